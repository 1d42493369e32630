//! Dynamic configuration (Kafka semantics 6.9). A resource is changed as a whole or not at all.

use std::collections::BTreeMap;

use minikafka_metadata::{ConfigResource, Record};
use minikafka_model::ErrorCode;

use crate::answer::{Answer, Refusal, ResourceResult};
use crate::command::{AlterConfigs, ConfigOp, IncrementalAlterConfigs, NamedResource, Overrides};
use crate::draft::{Draft, MIN_ISR};
use crate::event::ControlEvent;

/// The new values of one resource; none deletes a key.
type Changes = BTreeMap<String, Option<String>>;

impl Draft<'_> {
    pub(crate) fn incremental_alter_configs(&mut self, it: IncrementalAlterConfigs) -> Answer {
        self.alter_each(it.resources, it.validate_only, |draft, target, ops| {
            let now = draft.overrides(target);
            let mut changes = Changes::new();
            for (key, op) in ops {
                let current = changes.get(&key).cloned().unwrap_or_else(|| now.get(&key).cloned());
                let value = draft.new_value(target, &now, &key, current, op)?;
                if changes.insert(key, value).is_some() {
                    return Err(Refusal::new(
                        ErrorCode::InvalidRequest,
                        "Error due to duplicate config keys",
                    ));
                }
            }
            Ok(changes)
        })
    }

    pub(crate) fn alter_configs(&mut self, it: AlterConfigs) -> Answer {
        self.alter_each(it.resources, it.validate_only, |draft, target, values| {
            // What is not named goes back to what is below.
            let mut changes: Changes = draft.overrides(target).into_keys().map(|key| (key, None)).collect();
            for (key, value) in values {
                let value = value.ok_or_else(|| null_value(&key))?;
                changes.insert(key, Some(value));
            }
            Ok(changes)
        })
    }

    fn alter_each<T>(
        &mut self,
        resources: Vec<(NamedResource, T)>,
        validate_only: bool,
        changes_of: impl Fn(&Draft<'_>, ConfigResource, T) -> Result<Changes, Refusal>,
    ) -> Answer {
        let mut count: BTreeMap<NamedResource, usize> = BTreeMap::new();
        for (resource, _) in &resources {
            *count.entry(resource.clone()).or_default() += 1;
        }
        let results = resources
            .into_iter()
            .map(|(resource, wish)| {
                let outcome = if count[&resource] > 1 {
                    Err(Refusal::new(ErrorCode::InvalidRequest, "Each resource must appear at most once."))
                } else {
                    self.target(&resource).and_then(|target| {
                        let changes = changes_of(self, target, wish)?;
                        self.change_resource(&resource, target, changes, validate_only)
                    })
                };
                ResourceResult { resource, outcome }
            })
            .collect();
        Answer::AlteredConfigs(results)
    }

    fn target(&self, resource: &NamedResource) -> Result<ConfigResource, Refusal> {
        resource.resolve(|name| self.image.topic_id(name)).ok_or_else(|| {
            let name = match resource {
                NamedResource::Topic(name) => name.as_str(),
                NamedResource::Broker(_) | NamedResource::ClusterDefault => "",
            };
            let text = format!("The topic '{name}' does not exist.");
            Refusal::new(ErrorCode::UnknownTopicOrPartition, text)
        })
    }

    fn overrides(&self, target: ConfigResource) -> Overrides {
        self.image.configs(target).map(|map| map.as_ref().clone()).unwrap_or_default()
    }

    fn new_value(
        &self,
        target: ConfigResource,
        now: &Overrides,
        key: &str,
        current: Option<String>,
        op: ConfigOp,
    ) -> Result<Option<String>, Refusal> {
        let (word, value, append) = match op {
            ConfigOp::Delete => return Ok(None),
            ConfigOp::Set(value) => return value.map(Some).ok_or_else(|| null_value(key)),
            ConfigOp::Append(value) => ("APPEND", value, true),
            ConfigOp::Subtract(value) => ("SUBTRACT", value, false),
        };
        let value = value.ok_or_else(|| null_value(key))?;
        if !self.config.rules.is_list(key) {
            return Err(Refusal::new(
                ErrorCode::InvalidConfig,
                format!("Can't {word} to key {key} because its type is not LIST."),
            ));
        }
        let effective = || match target {
            ConfigResource::Topic(_) => {
                self.config.rules.topic_value(key, now, &self.overrides(ConfigResource::ClusterDefault))
            }
            ConfigResource::Broker(_) | ConfigResource::ClusterDefault => None,
        };
        let mut parts = split(&current.or_else(effective).unwrap_or_default());
        for part in split(&value) {
            if !append {
                parts.retain(|known| *known != part);
            } else if !parts.contains(&part) {
                parts.push(part);
            }
        }
        Ok(Some(parts.join(",")))
    }

    fn change_resource(
        &mut self,
        named: &NamedResource,
        target: ConfigResource,
        changes: Changes,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        for (key, value) in &changes {
            self.check_value(target, key, value.as_deref())?;
        }
        if validate_only {
            return Ok(());
        }
        let now = self.overrides(target);
        let mut min_isr_changed = false;
        for (key, value) in changes {
            if now.get(&key) == value.as_ref() {
                continue;
            }
            min_isr_changed |= key == MIN_ISR;
            let resource = match named {
                NamedResource::Topic(name) => format!("topic {name}"),
                NamedResource::Broker(id) => format!("broker {id}"),
                NamedResource::ClusterDefault => "all brokers".to_owned(),
            };
            self.tell(ControlEvent::ConfigChange { resource, key: key.clone(), value: value.clone() });
            self.put(Record::Config { resource: target, key, value });
        }
        if min_isr_changed && self.image.elr_enabled() {
            match target {
                ConfigResource::Topic(id) => self.put(Record::ClearElr { topic: Some(id) }),
                ConfigResource::ClusterDefault => self.put(Record::ClearElr { topic: None }),
                ConfigResource::Broker(_) => {}
            }
        }
        Ok(())
    }

    fn check_value(&self, target: ConfigResource, key: &str, value: Option<&str>) -> Result<(), Refusal> {
        let rules = &self.config.rules;
        let refused = match (target, value) {
            (ConfigResource::Topic(_), Some(value)) => rules.check_topic(key, value),
            (ConfigResource::Topic(_), None) => Ok(()),
            (ConfigResource::Broker(_), value) => rules.check_broker(key, value, true),
            (ConfigResource::ClusterDefault, value) => rules.check_broker(key, value, false),
        };
        refused.map_err(|refusal| Refusal::new(refusal.code, refusal.message))?;
        if key == MIN_ISR && self.image.elr_enabled() {
            let text = match (target, value) {
                (ConfigResource::Broker(_), _) => {
                    "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
                }
                (ConfigResource::ClusterDefault, None) => {
                    "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
                }
                _ => return Ok(()),
            };
            return Err(Refusal::new(ErrorCode::InvalidConfig, text));
        }
        Ok(())
    }
}

fn null_value(key: &str) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, format!("Null value not supported for : {key}"))
}

fn split(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
