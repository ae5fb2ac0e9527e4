//! Which token comes next: the likeliest, or one drawn at random from a seed.

/// How the next token is chosen, and when to end.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// 0 = always the likeliest token; else logits are divided by it before one is drawn.
    pub temperature: f64,
    /// Of the likeliest tokens only as many as together have this probability may be drawn; 1 = all.
    pub top_p: f64,
    /// Only this many of the likeliest tokens may be drawn; 0 = all.
    pub top_k: usize,
    /// Start of the random numbers: the same seed draws the same tokens.
    pub seed: u64,
    /// Most tokens to generate.
    pub max_tokens: usize,
    /// Ids that end the text.
    pub stop_ids: Vec<u32>,
}

impl Default for Sampling {
    /// The likeliest token, at most 512 of them.
    fn default() -> Self {
        Self { temperature: 0.0, top_p: 1.0, top_k: 0, seed: 0, max_tokens: 512, stop_ids: Vec::new() }
    }
}

impl Sampling {
    /// Do the numbers make sense?
    ///
    /// # Errors
    /// One line that names the number.
    pub fn check(&self) -> Result<(), String> {
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return Err(format!("temperature {}: expected 0 or more", self.temperature));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(format!("top_p {}: expected above 0 and at most 1", self.top_p));
        }
        Ok(())
    }

    /// The random numbers of this seed.
    pub(super) fn random(&self) -> Random {
        Random(self.seed)
    }
}

/// `SplitMix64`: few lines, the same numbers everywhere.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The next number, from 0 to below 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The next token's id; `None` if a logit is NaN or there are none. Among equal logits the lowest id goes first.
pub(super) fn pick(logits: &[f32], sampling: &Sampling, random: &mut Random) -> Option<u32> {
    if logits.iter().any(|v| v.is_nan()) {
        return None;
    }
    if sampling.temperature == 0.0 {
        let best = |a: (usize, f32), b: (usize, f32)| if b.1 > a.1 { b } else { a };
        return logits.iter().copied().enumerate().reduce(best).map(|(id, _)| id as u32);
    }
    let mut ranked: Vec<(u32, f32)> = logits.iter().enumerate().map(|(id, logit)| (id as u32, *logit)).collect();
    let likelier = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if sampling.top_k > 0 && sampling.top_k < ranked.len() {
        ranked.select_nth_unstable_by(sampling.top_k, likelier);
        ranked.truncate(sampling.top_k);
    }
    ranked.sort_unstable_by(likelier);
    let highest = f64::from(ranked.first()?.1);
    let mut shares: Vec<f64> =
        ranked.iter().map(|(_, logit)| ((f64::from(*logit) - highest) / sampling.temperature).exp()).collect();
    let mut whole: f64 = shares.iter().sum();
    if sampling.top_p < 1.0 {
        let wanted = sampling.top_p * whole;
        let mut reached = 0.0;
        let enough = shares.iter().position(|share| {
            reached += share;
            reached >= wanted
        });
        shares.truncate(enough.map_or(shares.len(), |last| last + 1));
        whole = shares.iter().sum();
    }
    let mut left = random.next() * whole;
    let drawn = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    // Rounding may leave a rest after the last share.
    ranked.get(drawn.unwrap_or(shares.len() - 1)).map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(logits: &[f32], sampling: &Sampling, times: usize) -> Vec<usize> {
        let mut random = sampling.random();
        let mut counts = vec![0; logits.len()];
        for _ in 0..times {
            counts[pick(logits, sampling, &mut random).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn at_temperature_zero_the_likeliest_and_among_equals_the_first() {
        let greedy = Sampling::default();
        assert_eq!(pick(&[0.5, 3.0, 3.0, -1.0], &greedy, &mut greedy.random()), Some(1));
        assert_eq!(pick(&[0.5, f32::NAN], &greedy, &mut greedy.random()), None);
        assert_eq!(pick(&[], &greedy, &mut greedy.random()), None);
        let warm = Sampling { temperature: 1.0, ..greedy };
        assert_eq!(pick(&[], &warm, &mut warm.random()), None);
    }

    #[test]
    fn tokens_are_drawn_as_often_as_they_are_likely() {
        let logits = [1.0, 0.0, 2.0, -30.0];
        let warm = Sampling { temperature: 1.0, seed: 7, ..Sampling::default() };
        let counts = draw(&logits, &warm, 20_000);
        let total: f64 = logits.iter().map(|v| f64::from(*v).exp()).sum();
        for (count, logit) in counts.iter().zip(logits) {
            let expected = f64::from(logit).exp() / total;
            assert!((*count as f64 / 20_000.0 - expected).abs() < 0.02, "{counts:?}");
        }
        assert_eq!(draw(&logits, &warm, 50), draw(&logits, &warm, 50), "the same seed draws the same");
        let cold = draw(&logits, &Sampling { temperature: 0.1, ..warm.clone() }, 1000);
        assert!(cold[2] > 990, "{cold:?}");
    }

    #[test]
    fn top_k_and_top_p_leave_the_unlikely_out() {
        let logits = [1.0, 0.0, 2.0, 1.0];
        let warm = Sampling { temperature: 1.0, ..Sampling::default() };
        let counts = draw(&logits, &Sampling { top_k: 2, ..warm.clone() }, 2000);
        assert!(counts[0] > 0 && counts[2] > 0 && counts[1] + counts[3] == 0, "equal ones by id: {counts:?}");
        // 2.0 alone has 53 % of the probability, with one of the next 73 %.
        let counts = draw(&logits, &Sampling { top_p: 0.5, ..warm.clone() }, 2000);
        assert_eq!(counts, [0, 0, 2000, 0]);
        let counts = draw(&logits, &Sampling { top_p: 0.6, ..warm.clone() }, 2000);
        assert!(counts[0] > 0 && counts[1] + counts[3] == 0, "{counts:?}");
        assert!(draw(&logits, &Sampling { top_p: 1.0, top_k: 100, ..warm }, 2000).iter().all(|c| *c > 0));
    }

    #[test]
    fn impossible_settings_are_refused_by_name() {
        let with = |temperature: f64, top_p: f64| Sampling { temperature, top_p, ..Sampling::default() }.check();
        assert_eq!(with(0.7, 0.9), Ok(()));
        for temperature in [-0.1, f64::NAN, f64::INFINITY] {
            assert!(with(temperature, 1.0).unwrap_err().starts_with("temperature"));
        }
        for top_p in [0.0, 1.1, f64::NAN] {
            assert!(with(0.0, top_p).unwrap_err().contains("expected above 0 and at most 1"));
        }
    }
}
