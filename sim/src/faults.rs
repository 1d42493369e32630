//! What goes wrong, by the dice: crashes, power losses within the budget, pauses, cut links, slow and lossy networks, a quorum that
//! is away.
//!
//! **The fault budget.** Without ELR (which comes later) the last member of an ISR stays in it, so a power loss is survived only if
//! the other members stay: power fails on one broker, at a moment when every ISR is full of lives that run and nothing else was
//! wrong for longer than a session, and until every ISR is full again no other broker is crashed, paused or cut off. Everything else may happen at any time: kills of any broker (what it wrote stays),
//! pauses, cut links in one direction or both, lossy and slow networks, a quorum that is away.

use std::collections::VecDeque;
use std::time::Duration;

use minikafka_model::BrokerId;

use crate::broker::Broker;
use crate::control::SESSION;
use crate::message::Node;
use crate::world::World;

/// The plan of faults.
#[derive(Debug)]
pub(crate) struct Plan {
    break_budget: bool,
    broken: bool,
    /// A broker lost power and is not back in every ISR yet.
    careful: Option<BrokerId>,
    /// Whose power fails next.
    next_victim: Option<BrokerId>,
}

impl Plan {
    pub(crate) fn new(break_budget: bool) -> Plan {
        Plan { break_budget, broken: false, careful: None, next_victim: None }
    }

    /// Every ISR is full, by the lives that run now.
    fn whole(world: &World) -> bool {
        let image = world.control.image();
        let present = |id: &BrokerId, broker: &Broker| {
            let epoch = broker.process.as_ref().and_then(|process| process.lifecycle.broker_epoch());
            image.broker(*id).is_some_and(|known| known.is_active() && Some(known.epoch) == epoch)
        };
        world.brokers.iter().all(|(id, broker)| present(id, broker))
            && image
                .partitions()
                .all(|(_, state)| state.isr.len() == state.replicas.len() && state.leader.is_some())
    }

    /// One fault, or its end. Gives the time until the next.
    pub(crate) fn strike(world: &mut World) -> Result<Duration, String> {
        let pause = Duration::from_millis(world.dice.range(50, 900));
        if world.plan().careful.is_some() && Plan::whole(world) && world.ledger.lost_power.is_empty() {
            world.plan().careful = None;
        }
        if world.plan().break_budget && !world.plan().broken && world.ledger.counts.acknowledged > 30 {
            return Plan::power_fails_everywhere(world);
        }
        let ids: Vec<BrokerId> = world.brokers.keys().copied().collect();
        let mut id = *world.dice.pick(&ids).expect("three");
        let leaders: Vec<BrokerId> =
            world.control.image().partitions().filter_map(|(_, state)| state.leader).collect();
        if world.dice.permille(400)
            && let Some(leader) = world.dice.pick(&leaders)
        {
            id = *leader;
        }
        if let Some(victim) = world.plan().next_victim.take() {
            if Plan::whole(world) {
                world.plan().careful = Some(victim);
                world.tell(|| format!("--- broker {victim} loses power"));
                world.power_fails(victim);
                world.connections_closed(victim);
            }
            return Ok(pause);
        }
        if let Some(victim) = world.plan().careful {
            // Only the victim is started again; everything else waits until it is back.
            if world.brokers[&victim].process.is_none() {
                Plan::start(world, victim)?;
            }
            return Ok(Duration::from_millis(300));
        }
        if world.brokers[&id].process.is_none() {
            Plan::start(world, id)?;
            return Ok(pause);
        }
        if world.paused.contains_key(&id) {
            world.tell(|| format!("--- broker {id} goes on"));
            world.resume(id);
            return Ok(pause);
        }
        world.ledger.counts.faults += 1;
        match world.dice.range(0, 15) {
            0 | 1 | 12 | 13 => {
                world.tell(|| format!("--- broker {id} is killed"));
                world.brokers.get_mut(&id).expect("known").crash(false);
                world.connections_closed(id);
            }
            2 if Plan::whole(world) && Plan::calm(world) => {
                // The power fails after a time without other faults, if everything is whole then.
                world.plan().next_victim = Some(id);
                return Ok(SESSION * 3 / 2);
            }
            3 => {
                world.tell(|| format!("--- broker {id} is paused"));
                world.paused.insert(id, VecDeque::new());
            }
            4 => {
                world.tell(|| format!("--- broker {id} is asked to stop"));
                world.step_broker(id, |broker, cx| broker.shut_down(cx))?;
            }
            5 | 6 => Plan::cut(world, id, &ids),
            7 => {
                world.net.loss = world.dice.range(0, 40);
                world.tell(|| "--- the network loses messages".to_owned());
            }
            14 => {
                world.tell(|| "--- another controller takes over".to_owned());
                world.step_controller(|control, cx| control.fail_over(cx))?;
            }
            8 => {
                world.net.slow = world.dice.range(1, 300_000);
                world.tell(|| "--- the network is slow".to_owned());
            }
            9 => {
                let (away, survive) = (world.dice.permille(500), world.dice.range(0, 4) as usize);
                world.tell(|| format!("--- the quorum is away: {away}"));
                world.step_controller(|control, cx| control.set_away(away, survive, cx))?;
            }
            _ => {
                world.tell(|| "--- the network heals".to_owned());
                world.net.heal();
                world.step_controller(|control, cx| control.set_away(false, 1, cx))?;
            }
        }
        Ok(pause)
    }

    /// No other fault is on: the power may fail somewhere.
    fn calm(world: &mut World) -> bool {
        if !world.paused.is_empty() || world.brokers.values().any(|broker| broker.process.is_none()) {
            return false;
        }
        world.net.heal();
        world.step_controller(|control, cx| control.set_away(false, 1, cx)).is_ok()
    }

    fn start(world: &mut World, id: BrokerId) -> Result<(), String> {
        world.tell(|| format!("--- broker {id} starts"));
        world.step_broker(id, |broker, cx| broker.start(cx))
    }

    fn cut(world: &mut World, id: BrokerId, ids: &[BrokerId]) {
        let others: Vec<Node> = ids
            .iter()
            .filter(|other| **other != id)
            .map(|other| Node::Broker(*other))
            .chain([Node::Controller])
            .collect();
        let me = Node::Broker(id);
        match world.dice.range(0, 4) {
            // From everybody but its clients, in both directions.
            0 => others.iter().for_each(|other| {
                world.net.cut(me, *other);
                world.net.cut(*other, me);
            }),
            // From the controllers only.
            1 => {
                world.net.cut(me, Node::Controller);
                world.net.cut(Node::Controller, me);
            }
            // One link, in one direction.
            _ => {
                let other = *world.dice.pick(&others).expect("three");
                if world.dice.permille(500) { world.net.cut(me, other) } else { world.net.cut(other, me) }
            }
        }
        world.tell(|| format!("--- links of broker {id} are cut"));
    }

    fn power_fails_everywhere(world: &mut World) -> Result<Duration, String> {
        world.plan().broken = true;
        world.ledger.beyond_budget = true;
        world.ledger.counts.faults += 1;
        world.tell(|| "--- the power fails everywhere".to_owned());
        for id in world.brokers.keys().copied().collect::<Vec<_>>() {
            world.power_fails(id);
        }
        Ok(Duration::from_millis(500))
    }
}
