"""Trajectories while they are drawn, value by value (`sites`), under linear conditions.

Values may be given: then nothing is drawn, and these trajectories get the weights that they have
under the conditions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from surrogate.kinds.conditions import Conditions, Remainder
from surrogate.kinds.decoder import Proposing, Uniforms
from surrogate.kinds.noising import BLIND
from surrogate.kinds.trajectories.conditionals import Conditionals, Values
from surrogate.kinds.trajectories.distributions import Distribution
from surrogate.kinds.trajectories.features import Memory
from surrogate.kinds.trajectories.sites import STATIC, Site, latent, ranges, real, value
from surrogate.kinds.trajectories.static_proposal import perturbed
from surrogate.kinds.trajectories.variables import Variable
from surrogate.kinds.weighted import MIN_LOG_SHARE, Weighted

KNOWN_SLACK = 1e-9  # relative, by which a condition may miss a value that is known


class Drawing:
    """Trajectories of one instance (B, C, T) while they are drawn.

    `known`: statics that a date fixes. `given`: values (`Sites.values`) to visit
    instead of drawing them from `uniform`.
    """

    def __init__(
        self,
        conditionals: Conditionals,
        known: Mapping[str, float],
        noisy: Tensor,
        sigma: float,
        uniform: Uniforms | None,
        conditions: Conditions[Site],
        instance: int,
        weighted: Weighted,
        given: Values | None = None,
    ) -> None:
        self.conditionals, self.sites = conditionals, conditionals.sites
        self.features, self.fixed = conditionals.features, known
        self.uniform, self.conditions, self.instance = uniform, conditions, instance
        self.weighted, self.rows, self.settled = weighted, torch.arange(len(noisy)), False
        self.given = given
        self.forked = False  # whether the filter has ended, and conditions count no more
        self.count = len(noisy)
        self.blind = blind = math.isinf(sigma)  # then all have the same context
        self.noisy = torch.zeros_like(noisy[:1]) if blind else noisy
        self.sigma = torch.full((len(self.noisy),), BLIND if blind else sigma)
        context, shrunk = conditionals.context(self.noisy, self.sigma)
        self.told = conditionals.told(self.sigma[:1])  # all have the same level
        self.context = context.expand(self.count, -1, -1)
        self.shrunk = shrunk.expand(self.count, -1, -1)
        self.x = torch.zeros(self.count, *self.sites.codec.shape, dtype=torch.float64)
        self.stack = self.features.first_stack(self.count)

    def run(self) -> tuple[Tensor, Tensor]:
        """Encoded trajectories (N, C, T), and the noisy ones that they descend from, (N,)."""
        sites, features = self.sites, self.features
        statics: list[Tensor] = []
        known: dict[str, Tensor] = {}
        for j, v in enumerate(sites.statics):
            seen = self.conditionals.static_input(j, self.context, self.noisy, self.sigma)
            head = self.conditionals.static_heads[j](
                torch.cat([seen, *(each[:, None] for each in statics)], 1)
            )
            if v.name in self.fixed:
                known[v.name] = self._known(v, head, j, statics)
            else:
                known[v.name] = self._draw(v, head, j, STATIC, None, None)
            statics += features.static(v, known[v.name])
        for v in sites.constants:
            known[v.name] = sites.constant(v, 0, self.count)
        zero = torch.zeros(self.count, dtype=torch.float64)
        before = {v.name: zero for v in (*sites.numbers, *sites.words)}
        remembered = features.order if features.remembers else {}
        memories = {name: Memory(self.count) for name in remembered}
        for t in range(sites.steps):
            past = features.waves(known, t)
            past += [each for own in memories.values() for each in own.features]
            noisy = {v.name: self.shrunk[:, sites.channels[v.name], t] for v in sites.series}
            seen = self.conditionals.step_input(
                self.context[:, t], statics, before, past, noisy, self.told, t
            )
            now = dict(known)
            for j, v in enumerate(sites.series):
                last = before[v.name]
                if bool(sites.free[j, t]):
                    around = now, before if t else None
                    now[v.name] = self._draw(
                        v, self.conditionals.heads[j](seen), j, t, last, around
                    )
                else:
                    now[v.name] = sites.constant(v, t, self.count)
                    self._place(v, now[v.name], t)
                drawn = features.drawn(v, now[v.name], last, t, self.stack)
                features.place_in_stack(self.stack, v, now[v.name])
                if v.name in memories:
                    memories[v.name].add(drawn[0])
                if j + 1 < len(sites.series):
                    seen = torch.cat([seen, torch.stack(drawn, -1)], -1)
            for v in sites.numbers:
                if v.name not in now and v.name in sites.rows:
                    now[v.name] = sites.constant(v, t, self.count)
            before = sites.restore(now)
            self.stack = features.next_stack(self.stack)
            rows = None if self.forked else self._resampled(t, before)
            if rows is not None:
                self._select(rows)
                statics = [each[rows] for each in statics]
                known = {name: y[rows] for name, y in known.items()}
                before = {name: y[rows] for name, y in before.items()}
                for memory in memories.values():
                    memory.select(rows)
                if self.forked:
                    self._perturb(known)
                    before |= known
                    own = [features.static(v, known[v.name]) for v in sites.statics]
                    statics = [feature for each in own for feature in each]
        return self.x, self.rows

    def _resampled(self, t: int, values: Values) -> Tensor | None:
        """The rows to go on with after step t, None for all; the filter may end here."""
        weighted = self.weighted
        settled = weighted.look_ahead(t, values, self.conditions.sums) or self.settled
        self.settled = False
        if weighted.fork is not None and t == weighted.fork.step:
            self.forked = True
            return weighted.fork.select(weighted.log_weights)
        return weighted.resample(weighted.log_weights) if settled else None

    def _perturb(self, known: dict[str, Tensor]) -> None:
        """Perturb the statics that have a density, unless a condition concerns them."""
        assert self.weighted.fork is not None
        sites = self.sites
        moved = []
        for j, v in enumerate(sites.statics):
            own = sites.coordinates((self.instance, STATIC, j))
            if real(v) and not bool((self.conditions.pins.rows[:, own] != 0).any()):
                moved.append(v)
        if not moved:
            return
        z = torch.stack([latent(v, known[v.name]) for v in moved], 1)
        for v, made in zip(
            moved, perturbed(z, self.weighted.fork.generator).unbind(1), strict=True
        ):
            known[v.name] = value(v, made).clamp(*ranges(v))
            self._place(v, known[v.name], STATIC)

    def _select(self, rows: Tensor) -> None:
        """Go on with resampled points."""
        self.weighted.select(rows)
        self.conditions.select(rows)
        self.context, self.shrunk, self.x = self.context[rows], self.shrunk[rows], self.x[rows]
        self.rows = self.rows[rows]
        self.stack = None if self.stack is None else self.stack[rows]

    def _draw(
        self,
        v: Variable,
        head: Tensor,
        j: int,
        t: int,
        last: Tensor | None,
        around: tuple[Values, Values | None] | None,
    ) -> Tensor:
        """Draw and place the value of a site, (B,)."""
        site = self.instance, t, j
        copies = self.sites.steps if t == STATIC else 1
        remainder = None
        if not self.forked:
            remainder = self.conditions.at(site, self.sites.coordinates(site)[::copies], copies)
        given = None if self.given is None else self.given[v.name][:, max(t, 0)].double()
        if v.kind == "words":
            y = self._choose(v, head, site, remainder, given)
        else:
            y = self._number(v, head, site, remainder, last, around, given)
        self._place(v, y, t)
        return y

    def _known(self, v: Variable, head: Tensor, j: int, statics: list[Tensor]) -> Tensor:
        """Place a static y that a date fixes, (B,). Samples are from p(x | y), which has the weight
        p(y | noisy point) / p(y): 1 where there is no noisy point."""
        site = self.instance, STATIC, j
        y = torch.full((self.count,), self.fixed[v.name], dtype=torch.float64)
        own = self.conditionals
        weight = torch.zeros_like(y)
        if not self.blind:
            sigma, nothing = torch.full((1,), BLIND), torch.zeros_like(self.noisy[:1])
            seen = own.static_input(j, own.context(nothing, sigma)[0], nothing, sigma)
            seen = torch.cat([seen.expand(self.count, -1), *(each[:, None] for each in statics)], 1)
            low, high = own.interval(v, y, None, None)
            for sign, each in ((1, head), (-1, own.static_heads[j](seen))):
                part = own.distribution(v, each, None, 0).log_likelihood(y, (low, high))
                weight = weight + sign * part.double()
        remainder = self.conditions.at(
            site, self.sites.coordinates(site)[:: self.sites.steps], self.sites.steps
        )
        if remainder is not None:
            low, high = remainder.interval()
            slack = KNOWN_SLACK * (1 + y.abs())
            weight = torch.where((low - slack <= y) & (y <= high + slack), weight, -torch.inf)
        self._settle(site, weight)
        self._place(v, y, STATIC)
        return y

    def _settle(self, site: Site, log_probability: Tensor) -> None:
        self.weighted.settle(self.conditions.settled_by(site), log_probability)
        self.settled = True

    def _choose(
        self,
        v: Variable,
        head: Tensor,
        site: Site,
        remainder: Remainder | None,
        given: Tensor | None,
    ) -> Tensor:
        log_p = torch.log_softmax(head.double(), -1)
        if remainder is not None:
            met = remainder.allows(torch.eye(len(v.categories), dtype=torch.float64))
            allowed = log_p.masked_fill(~met, -torch.inf)
            self._settle(site, torch.logsumexp(allowed, -1))
            log_p = torch.where(met.any(1, keepdim=True), allowed, log_p)
        if given is not None:
            return given
        assert self.uniform is not None
        share = torch.softmax(log_p, -1).cumsum(-1)
        chosen = (share < self.uniform(1)[0][:, None] * share[:, -1:]).sum(-1)
        return chosen.clamp_max(len(v.categories) - 1).double()

    def _number(
        self,
        v: Variable,
        head: Tensor,
        site: Site,
        remainder: Remainder | None,
        last: Tensor | None,
        around: tuple[Values, Values | None] | None,
        given: Tensor | None,
    ) -> Tensor:
        own = self.conditionals.distribution(v, head, last, max(site[1], 0), self.stack)
        like = torch.zeros(self.count, dtype=torch.float64)
        low, high = self.conditionals.interval(v, like, *(around or (None, None)))
        if remainder is not None:
            a, b = remainder.interval()
            if v.kind != "real":
                a, b = torch.ceil(a - 1e-6), torch.floor(b + 1e-6)
            a, b = torch.maximum(low, a), torch.minimum(high, b)
            possible = a <= b
            within = low, high
            low, high = torch.where(possible, a, low), torch.where(possible, b, high)
            share = own.log_share(low, high, within).double()
            if around is not None:
                possible &= share > MIN_LOG_SHARE
            self._settle(site, torch.where(possible, share, -torch.inf))
        if given is not None:
            return given
        assert self.uniform is not None
        drawn = own.sample(low, high, self.uniform(2))
        proposing = self.weighted.proposing if last is None else None
        if proposing is None:
            return drawn
        if not isinstance(own, Distribution) or not real(v):
            return drawn
        if remainder is not None:
            proposing.given(v.name, latent(v, drawn))
            return drawn
        return self._proposed(proposing, own, drawn, (low, high))

    def _proposed(
        self,
        proposing: Proposing,
        own: Distribution,
        drawn: Tensor,
        within: tuple[Tensor, Tensor],
    ) -> Tensor:
        """Values (B,) of a static by a proposal, with their weights."""
        assert self.uniform is not None
        z = proposing.offered(own.variable.name, latent(own.variable, drawn), self.uniform)
        y = value(own.variable, z)
        inside = (y >= within[0]) & (y <= within[1])
        y = torch.minimum(torch.maximum(y, within[0]), within[1])
        log_p = torch.where(inside, own.log_likelihood(y, within).double(), -torch.inf)
        self.weighted.log_weights += proposing.log_ratio(own.variable.name, z, log_p)
        return y

    def _place(self, v: Variable, y: Tensor, t: int) -> None:
        """Write a value into the encoded points and count it for the conditions."""
        sites, codec = self.sites, self.sites.codec
        rows, own = sites.rows[v.name], sites.channels[v.name]
        if v.kind == "words":
            values = encoded = one_hot(y.long(), len(v.categories)).to(y)
        else:
            values, encoded = y[:, None], latent(v, y)[:, None]
        if t == STATIC:
            made = (encoded[..., None] - codec.mean[rows]) / codec.scale[rows]
            self.x[:, own] = made
            values = values[..., None].expand(-1, -1, sites.steps).flatten(1)
        else:
            self.x[:, own, t] = (encoded - codec.mean[rows][:, t]) / codec.scale[rows][:, t]
        if self.conditions.active and not self.forked:
            number = (sites.statics if t == STATIC else sites.series).index(v)
            site = self.instance, t, number
            self.conditions.add(values, sites.coordinates(site))
            if (known := self.conditions.known_after(site)) is not None:
                self.weighted.settle(*known)
                self.settled = True
