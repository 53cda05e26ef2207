"""Quotes: what the rest of a run is expected to cost on each offer, and why."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prime_train.market import priors
from prime_train.market.expectation import Course, expected
from prime_train.market.observations import NOTHING_SEEN, Observations, Times
from prime_train.market.run_lengths import Guess
from prime_train.market.step_times import StepTime, TimeSource
from prime_train.runs.forecast import Fit, GpuNeed, Kind, kind_of, need_on
from prime_train.runs.offer import Offer, memory_gb
from prime_train.text.formatting import span, usd

GIB = 2**30
WHOLE_DOLLARS_FROM = 10.0
NO_STORE = "the control plane's store cannot be read here"


@dataclass(frozen=True)
class Work:
    """What is left to do of a run. `config`: the name of its config. `steps`: steps left; None: not known.
    `step_times`: by kind of machine. `hours`: hours of training that are left in the budget; None: not
    limited. `interval_steps`: steps from one save to the next. `interval_s`, `upload_s`: as measured.
    `resumes`: whether the next machine restores a checkpoint. `deadline_h`: hours until the run must be
    saved; None: there is no deadline. `is_probe`: only a few steps are measured, so that no kind of machine
    takes much longer than another. `stall_s`: seconds that training pauses for a save; None: not known.
    `smoke_s_max`: the timeout of the smoke run, 0: there is none; `smoke_steps`: its steps, None: not known.
    `needs`: the memory of GPUs that the training takes; empty: not known. `given_step_s`: seconds of a step
    on every machine, as the person who asks has given them; None: they were not given. `guess`: from which
    finished runs `steps` is guessed; None: it is not. `unit`: what is counted, steps or epochs.
    """

    config: str = ""
    steps: int | None = None
    step_times: Mapping[Kind, StepTime] = field(default_factory=dict)
    hours: float | None = None
    interval_steps: int | None = None
    interval_s: float | None = None
    upload_s: float | None = None
    checkpoint_bytes: float = 0.0
    model_bytes: float = 0.0
    resumes: bool = False
    deadline_h: float | None = None
    is_probe: bool = False
    stall_s: float | None = None
    smoke_s_max: float = 0.0
    smoke_steps: int | None = None
    needs: tuple[GpuNeed, ...] = ()
    given_step_s: float | None = None
    guess: Guess | None = None
    unit: str = "steps"

    def step_time(self, offer: Offer) -> StepTime | None:
        """Return the time of a step on the offer's kind of machine, or, where nothing is known of its board,
        on another board; None: not known.
        """
        if self.given_step_s is not None:
            return StepTime(self.given_step_s, TimeSource.GIVEN)
        return self.step_times.get(kind_of(offer)) or self.step_times.get((offer.gpu, offer.gpu_count))

    def need(self, offer: Offer) -> GpuNeed | None:
        """Return the memory that the training needs of each of the offer's GPUs; None: not known."""
        return need_on(self.needs, offer.gpu_count)

    def fit(self, offer: Offer) -> Fit | None:
        """Return whether the training fits the offer's GPUs; None: not known. Where it has trained before, it
        fits, whatever is estimated.
        """
        step = self.step_time(offer)
        if step is not None and step.source is TimeSource.MEASURED:
            return Fit.YES
        if self.needs and not offer.gpu and offer.gpu_count == 0:
            return Fit.NO
        need = self.need(offer)
        return need.fit(memory_gb(offer)) if need is not None and memory_gb(offer) else None

    def hours_on(self, offer: Offer) -> float | None:
        """Return the hours of training that are left on the offer's kind of machine; None: not known."""
        step = self.step_time(offer)
        return None if step is None or self.steps is None else self.steps * step.seconds / 3600


@dataclass(frozen=True)
class Quote:
    """The expected cost of the rest of a run on machines like this offer. `hours`: from the order to the last
    durable step, losses included. `source`: where the hours of training come from; None: they are assumed.
    `deadline_h`: hours until the deadline; None: the run is expected to be done by then, or has none.
    `step_s`: seconds of a step; None: not known.
    """

    offer: Offer
    usd: float
    hours: float
    work_h: float
    source: TimeSource | None
    losses_per_h: float
    losses: float
    hours_per_loss: float
    start_h: float
    traffic_usd: float = 0.0
    deadline_h: float | None = None
    step_s: float | None = None
    share: float | None = None
    """The price of a spot machine as a share of the on-demand price; None: not known."""
    boot_h: float = 0.0
    smoke_h: float = 0.0
    """The part of `start_h` that is the smoke run, if that is told apart."""
    saving_h: float = 0.0
    """The part of `work_h` in which training pauses for saves, if that is told apart."""
    upload_h: float = 0.0
    fit: Fit | None = None
    """Whether the training fits the GPUs; None: not known."""
    need: GpuNeed | None = None
    is_guessed: bool = False
    """Whether the number of steps is guessed from finished runs."""

    @property
    def misfit(self) -> int:
        """Return how far an offer comes down because the training is not expected to fit its GPUs."""
        return 0 if self.fit is None or self.fit.is_expected else list(Fit).index(self.fit)

    @property
    def is_late(self) -> bool:
        return self.deadline_h is not None

    @property
    def total(self) -> str:
        """Return the expected dollars as text."""
        if not math.isfinite(self.usd):
            return "no end"
        return f"${self.usd:,.0f}" if self.usd >= WHOLE_DOLLARS_FROM else usd(self.usd)

    @property
    def why(self) -> str:
        """Return the reasons in words: $41 to the end: 10.2 h of training at $3.10/h, 0.4 losses expected, 25
        min each
        """
        if not math.isfinite(self.usd):
            return (
                f"would not end: a machine is lost every {span(3600 / self.losses_per_h)}, and a "
                "start "
                f"takes {span(self.start_h * 3600)}"
            )
        known = {
            None: " (assumed)",
            TimeSource.GIVEN: " (as given)",
            TimeSource.ESTIMATED: " (estimated)",
            TimeSource.SCALED: " (scaled)",
            TimeSource.SIMILAR: " (scaled)",
            TimeSource.MEASURED: "",
        }[self.source]
        if self.is_guessed and self.source is not None:
            known = (
                f"{known.removesuffix(')')}, steps as in finished runs)"
                if known
                else " (steps as in finished runs)"
            )
        traffic = f" and {usd(self.traffic_usd)} of traffic" if self.traffic_usd else ""
        price = f"{_hours(self.work_h)} of training{known} at {usd(self.offer.usd_per_hour)}/h{traffic}"
        return f"{self.total} to the end: {price}, {self._losses}{self._deadline}{self._memory}"

    @property
    def memory(self) -> str:
        """Return in words why the training may not fit; "" if it does, or that is not known."""
        if self.fit in (None, Fit.YES):
            return ""
        if self.need is None:
            return "it has no GPU, and the training needs one"
        verdict = {Fit.TIGHT: "barely fits", Fit.UNLIKELY: "probably does not fit", Fit.NO: "does not fit"}[
            self.fit
        ]
        return f"it needs {self.need.text}, of {memory_gb(self.offer)} GB: it {verdict}"

    @property
    def _losses(self) -> str:
        if self.losses < 0.05:
            return "hardly any losses expected"
        count = f"{self.losses:.1f}"
        return (
            f"{count} {'loss' if count == '1.0' else 'losses'} expected, {_hours(self.hours_per_loss)} each"
        )

    @property
    def _memory(self) -> str:
        return f"; {self.memory}" if self.memory else ""

    @property
    def _deadline(self) -> str:
        if self.deadline_h is None:
            return ""
        return (
            f"; not expected to end by the deadline: it takes {_hours(self.hours)}, "
            "and "
            f"{_hours(self.deadline_h)} are left"
        )


@dataclass(frozen=True)
class Market:
    """What is known when offers are compared: the work that is left, and what this account has seen of
    machines. `has_store`: whether what it has seen could be read here; `why_unread`: why not, in words.
    """

    work: Work = Work()
    seen: Observations = NOTHING_SEEN
    has_store: bool = True
    why_unread: str = NO_STORE

    def quotes(
        self, offers: Sequence[Offer], *, among: Sequence[Offer] = (), avoided: Collection[str] = ()
    ) -> list[Quote]:
        """Return a quote for each offer, in the same order. The price level of a spot machine is that among
        the offers `among`, or else among `offers`. `avoided`: offers of which a machine was preempted within
        the last hour, by id.
        """
        shares = self.shares(offers, among=among)
        return [
            self.quote(offer, share, is_avoided=offer.offer_id in avoided)
            for offer, share in zip(offers, shares, strict=True)
        ]

    def shares(self, offers: Sequence[Offer], *, among: Sequence[Offer] = ()) -> list[float | None]:
        """Return the price of each spot offer as a share of the lowest on-demand price for such a machine;
        None: on-demand, or not known. Prices of the same provider are preferred.
        """
        steady = _steady_prices(among or offers)
        return [_share(offer, steady) for offer in offers]

    def can_compare(self, offers: Iterable[Offer]) -> bool:
        """Return whether dollars can be compared between these offers: they all have one kind of GPU, or it
        is known how long the run takes on each kind, or that hardly matters.
        """
        if self.work.is_probe:
            return True
        kinds = {kind_of(offer): offer for offer in offers}
        return len({gpu for gpu, _ in kinds}) <= 1 or all(
            self.work.hours_on(offer) is not None for offer in kinds.values()
        )

    @property
    def basis(self) -> str:
        """Return in a sentence what losses and start times are based on."""
        if not self.has_store:
            return f"losses and start times are assumptions, because {self.why_unread}"
        if not self.seen.machines:
            return "losses and start times are assumptions, because no machine of this account was seen yet"
        machines = f"{self.seen.machines:,} machine{'' if self.seen.machines == 1 else 's'}"
        return f"losses and start times as seen on {machines} of this account, together with assumptions"

    @property
    def length(self) -> str:
        """Return in words where the number of steps is from; empty if the config, or whoever asks, says
        it.
        """
        work = self.work
        if work.guess is not None:
            return work.guess.text(work.unit)
        if work.steps is not None or work.is_probe:
            return ""
        hours = f"the budget's {work.hours:g} hours" if work.hours is not None else f"{priors.WORK_H:g} hours"
        return (
            f"the config does not say how many {work.unit} it makes, and no finished run is like "
            "it: "
            f"{hours} of training are assumed"
        )

    def losses_per_h(self, offer: Offer, share: float | None) -> float:
        """Return the losses per hour to expect. `share`: the price of a spot machine as a share of the
        on-demand price; None: unknown.
        """
        prior_h = priors.loss_every_h(offer.provider, spot=offer.spot, share=share)
        return self.seen.losses_of(offer.provider, spot=offer.spot).per_h(prior_h)

    def course(self, offer: Offer, share: float | None = None, *, is_avoided: bool = False) -> Course:
        """Return how the run would go on machines like this offer. `is_avoided`: one of them was preempted
        within the last hour.
        """
        work, interval_s = self.work, self._interval_s(offer)
        boot_s, setup_s, smoke_s, resume_s = self._start_times(offer)
        return Course(
            self._work_h(offer) + self._saving_h(offer),
            self.losses_per_h(offer, share) * (priors.LOSSES_FACTOR_AFTER_LOSS if is_avoided else 1.0),
            start_h=(boot_s + (resume_s if work.resumes else setup_s + smoke_s)) / 3600,
            restart_h=(boot_s + resume_s) / 3600,
            detection_h=self.seen.detection.mean_s(priors.DETECTION_S) / 3600,
            interval_h=(priors.INTERVAL_S if interval_s is None else interval_s) / 3600,
            upload_h=(priors.UPLOAD_S if work.upload_s is None else work.upload_s) / 3600,
        )

    def _interval_s(self, offer: Offer) -> float | None:
        """Return the seconds of training between two saves; None: not known."""
        work, step = self.work, self.work.step_time(offer)
        if work.interval_s is None and work.interval_steps is not None and step is not None:
            return work.interval_steps * step.seconds
        return work.interval_s

    def _saving_h(self, offer: Offer) -> float:
        """Return the hours for which training pauses for saves, as far as that is known and not in a measured
        time of a step.
        """
        work, step, interval_s = self.work, self.work.step_time(offer), self._interval_s(offer)
        if work.stall_s is None or not interval_s or step is None or step.source is not TimeSource.ESTIMATED:
            return 0.0
        return math.floor(self._work_h(offer) * 3600 / interval_s) * work.stall_s / 3600

    def _smoke_s(self, offer: Offer) -> float:
        """Return the seconds of the smoke run: its steps, or if they are not known, the middle between a
        short one and its timeout.
        """
        work, step = self.work, self.work.step_time(offer)
        if work.smoke_s_max <= 0:
            return 0.0
        if work.smoke_steps is not None and step is not None:
            return min(work.smoke_s_max, priors.SMOKE_START_S + work.smoke_steps * step.seconds)
        return math.sqrt(min(priors.SMOKE_SHORT_S, work.smoke_s_max) * work.smoke_s_max)

    def _start_times(self, offer: Offer) -> tuple[float, float, float, float]:
        """Return the seconds of the boot, of the set-up from there to the first step, of the smoke run if it
        is not in that, and of a set-up with the restore of a checkpoint, which is not preceded by a smoke
        run.
        """
        seen, config = self.seen, self.work.config
        boot_s = _mean_s(seen.boot, offer.provider, priors.provider_prior(offer.provider).boot_s)
        restore_s = (
            self.work.checkpoint_bytes / priors.RESTORE_BYTES_PER_S
            if self.work.checkpoint_bytes
            else priors.RESTORE_S
        )
        smoke_s = self._smoke_s(offer)
        if config in seen.setup:
            setup_s, smoke_s = seen.setup[config].mean_s(priors.SETUP_S + smoke_s), 0.0
        else:
            setup_s = priors.SETUP_S
        return boot_s, setup_s, smoke_s, _mean_s(seen.resume, config, setup_s + restore_s)

    def _work_h(self, offer: Offer) -> float:
        known_h = self.work.hours_on(offer)
        if known_h is not None:
            return known_h
        return priors.WORK_H if self.work.hours is None else self.work.hours

    def quote(self, offer: Offer, share: float | None = None, *, is_avoided: bool = False) -> Quote:
        """Return the quote for an offer whose price is that share of the on-demand price. `is_avoided`: a
        machine of this offer was preempted within the last hour.
        """
        course, step = self.course(offer, share, is_avoided=is_avoided), self.work.step_time(offer)
        expectation = expected(course)
        traffic_usd = self._traffic_usd(offer, course, expectation.losses)
        known = self.work.hours_on(offer) is not None
        left_h = self.work.deadline_h
        boot_s, _, smoke_s, _ = self._start_times(offer)
        return Quote(
            offer,
            expectation.hours * offer.usd_per_hour + traffic_usd
            if math.isfinite(expectation.hours)
            else math.inf,
            expectation.hours,
            course.work_h,
            step.source if step is not None and known else None,
            course.losses_per_h,
            expectation.losses,
            expectation.hours_per_loss,
            course.start_h,
            traffic_usd,
            left_h if known and left_h is not None and expectation.hours > left_h else None,
            step.seconds if step is not None else None,
            share,
            boot_h=boot_s / 3600,
            smoke_h=0.0 if self.work.resumes else smoke_s / 3600,
            saving_h=self._saving_h(offer),
            upload_h=course.upload_h,
            fit=self.work.fit(offer),
            need=self.work.need(offer),
            is_guessed=self.work.guess is not None,
        )

    def _traffic_usd(self, offer: Offer, course: Course, losses: float) -> float:
        if not (offer.usd_per_gib_down or offer.usd_per_gib_up) or not math.isfinite(losses):
            return 0.0
        work, saves = self.work, course.work_h / course.interval_h if course.interval_h else 0.0
        down = work.model_bytes * (1 + losses) + work.checkpoint_bytes * (losses + work.resumes)
        return (down * offer.usd_per_gib_down + work.checkpoint_bytes * saves * offer.usd_per_gib_up) / GIB


def _mean_s(times: Mapping[str, Times], key: str, prior_s: float) -> float:
    return times.get(key, Times()).mean_s(prior_s)


def _steady_prices(offers: Iterable[Offer]) -> dict[tuple[str, str, int], float]:
    """Return the lowest on-demand price of each kind of machine, of each provider and, under an empty name,
    of all.
    """
    found: dict[tuple[str, str, int], float] = {}
    for offer in offers:
        if not offer.spot:
            for provider in (offer.provider, ""):
                key = (provider, offer.gpu, offer.gpu_count)
                found[key] = min(found.get(key, math.inf), offer.usd_per_hour)
    return found


def _share(offer: Offer, steady: Mapping[tuple[str, str, int], float]) -> float | None:
    if not offer.spot:
        return None
    price = steady.get((offer.provider, offer.gpu, offer.gpu_count)) or steady.get(
        ("", offer.gpu, offer.gpu_count)
    )
    return offer.usd_per_hour / price if price else None


def _hours(hours: float) -> str:
    return f"{hours * 60:.0f} min" if hours < 1 else f"{hours:.1f} h" if hours < 100 else f"{hours:,.0f} h"
