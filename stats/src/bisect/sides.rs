use super::course::{Course, Sure, Wanted};

impl Course<'_> {
    /// Measures good groups across until any two sides are chained together or known to be apart.
    pub(super) fn link(&mut self) -> Result<(), Wanted> {
        while let Some(firsts) = self.unlinked() {
            let group = self.across(&firsts);
            let fails = self.fails(&group, Sure::Once)?;
            if fails == Some(false) {
                self.known.pass(&group);
                continue;
            }
            for (at, &host) in firsts.iter().enumerate() {
                for &earlier in &firsts[..at] {
                    // Already together, or apart by other hosts of their sides.
                    if self.is_settled(earlier, host) {
                        continue;
                    }
                    if self.pair_fails(earlier, host, self.loss(&group))? == Some(false) {
                        self.known.pass(&[earlier, host]);
                    }
                }
            }
            if fails == Some(true) && !self.across.contains(&group) {
                self.across.push(group);
            }
        }
        Ok(())
    }

    /// First hosts of sides that were not compared yet, as many as a group of the screen has; `None` for none.
    fn unlinked(&self) -> Option<Vec<u32>> {
        let sides = self.known.sides();
        let mut left: &[Vec<u32>] = &sides;
        while let [first, rest @ ..] = left {
            let mut firsts = vec![first[0]];
            for side in rest {
                if firsts.len() < self.size() && firsts.iter().all(|host| !self.is_settled(*host, side[0])) {
                    firsts.push(side[0]);
                }
            }
            if firsts.len() > 1 {
                return Some(firsts);
            }
            left = rest;
        }
        None
    }

    /// Whether the sides of two good hosts are one, or were compared.
    fn is_settled(&self, a: u32, b: u32) -> bool {
        self.known.together(a, b) || self.between(a, b).next().is_some()
    }

    fn between(&self, a: u32, b: u32) -> impl Iterator<Item = (u32, u32, Option<bool>)> {
        self.pairs.iter().filter_map(move |(&(c, d), &fails)| {
            let along = |c, d| self.known.together(a, c) && self.known.together(b, d);
            if along(c, d) { Some((c, d, fails)) } else { along(d, c).then_some((d, c, fails)) }
        })
    }

    /// Whether the sides of two good hosts are low together.
    pub(super) fn are_apart(&self, a: u32, b: u32) -> bool {
        !self.known.together(a, b) && self.between(a, b).any(|(.., fails)| fails == Some(true))
    }

    /// These hosts, with peers of the first up to the size of the screen, whose reference is known.
    fn across(&self, firsts: &[u32]) -> Vec<u32> {
        let fellows = self.known.home(firsts[0]).iter().filter(|host| !firsts.contains(host));
        firsts.iter().chain(fellows).take(self.size().max(firsts.len())).copied().collect()
    }

    /// Takes apart the failed groups across whose hosts are on one side with no found boundary between them: something is slow between
    /// two of their sides that hosts of a third hide.
    pub(super) fn look_within(&mut self) -> Result<(), Wanted> {
        while let Some(group) = self.across.pop() {
            let one_side = group.iter().all(|host| self.known.together(group[0], *host));
            let meets = |side: &Vec<u32>| side.iter().any(|host| group.contains(host));
            if !one_side || self.found.boundaries.iter().any(|(a, b)| meets(a) && meets(b)) {
                continue;
            }
            let before = std::mem::take(&mut self.found.boundaries);
            self.take_apart(&group)?;
            let within = std::mem::replace(&mut self.found.boundaries, before);
            for (a, b) in within {
                let sides = self.widened(a, b)?;
                self.add_boundary(sides);
            }
        }
        Ok(())
    }

    /// Two sides of representative hosts, with all the groups that are low with the other side.
    fn widened(&mut self, a: Vec<u32>, b: Vec<u32>) -> Result<(Vec<u32>, Vec<u32>), Wanted> {
        Ok((self.wide(&a, b[0])?, self.wide(&b, a[0])?))
    }

    fn wide(&mut self, side: &[u32], other: u32) -> Result<Vec<u32>, Wanted> {
        let own = side[0];
        // If a peer of the host is good, the host itself is slow there, not its group.
        let fellow = self.known.home(own).iter().copied().find(|fellow| *fellow != own && *fellow != other);
        let Some(fellow) = fellow else { return Ok(side.to_vec()) };
        if self.pair_fails(fellow, other, self.loss(&[own, other]))? != Some(true) {
            return Ok(side.to_vec());
        }
        let others = self.known.home(other).to_vec();
        let free: Vec<u32> = self.known.sides().concat().into_iter().filter(|host| !others.contains(host)).collect();
        self.low_beside(&free, own, other)
    }

    pub(super) fn part(&mut self) -> Result<(), Wanted> {
        let sides = self.known.sides();
        let apart = |a: &Vec<u32>, b: &Vec<u32>| self.are_apart(a[0], b[0]);
        let all = |sides: &[Vec<u32>]| {
            (0..sides.len()).all(|at| sides[..at].iter().all(|earlier| apart(earlier, &sides[at])))
        };
        match &sides[..] {
            [] | [_] => {}
            [a, b] if apart(a, b) => {
                let ends = self.between(a[0], b[0]).find(|(.., fails)| *fails == Some(true));
                if let Some((first, second, _)) = ends {
                    let (a, b) = (self.low_beside(a, first, second)?, self.low_beside(b, second, first)?);
                    self.add_boundary((a, b));
                }
            }
            more if all(more) => self.found.parted = sides,
            _ => self.found.open.extend(sides.into_iter().skip(1)),
        }
        Ok(())
    }

    /// Hosts of a side whose groups fail with a host of the other side, as `own` does. A side may have hosts that are good with both.
    fn low_beside(&mut self, side: &[u32], own: u32, other: u32) -> Result<Vec<u32>, Wanted> {
        let mut low: Vec<u32> = Vec::new();
        let mut homes: Vec<(Vec<u32>, bool)> = vec![(self.known.home(own).to_vec(), true)];
        for &host in side {
            let home = self.known.home(host).to_vec();
            let told = homes.iter().find(|(known, _)| *known == home).map(|(_, fails)| *fails);
            let fails = match told {
                Some(fails) => fails,
                None => {
                    let fails = self.pair_fails(host, other, self.loss(&[own, other]))? != Some(false);
                    homes.push((home, fails));
                    fails
                }
            };
            if fails {
                low.push(host);
            }
        }
        Ok(low)
    }
}
