//! Randomness that is handed in: the same seed gives the same decisions.

/// A small generator (SplitMix64) for placement and topic ids. Not for secrets.
#[derive(Debug, Clone)]
pub struct Dice {
    state: u64,
    mixed_in: u64,
}

impl Dice {
    /// From random bits drawn by the shell.
    pub fn new(seed: u128) -> Dice {
        Dice { state: seed as u64, mixed_in: (seed >> 64) as u64 }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state ^ self.mixed_in.rotate_left((self.state >> 58) as u32);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 128 bits.
    pub fn wide(&mut self) -> u128 {
        (u128::from(self.bits()) << 64) | u128::from(self.bits())
    }

    /// A number below `bound`; 0 where `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.bits() % bound as u64) as usize }
    }

    /// Puts a list in a random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}
