/**
 * Where a request goes, and with which sentence it is refused, in the simplest form: lists of accounts, waiters and tries, which each look
 * goes through as a whole. Times are milliseconds of one clock.
 */
import * as fc from "fast-check"

/** A budget of a window that begins at whole minutes or hours. */
export interface NaiveLimit {
  readonly window: "minute" | "hour"
  readonly requests?: number
  readonly tokens?: number
  readonly strict: boolean
}

export interface NaiveUpstream {
  readonly name: string
  readonly perAccount: number
  readonly queue: number
  readonly accounts: number
  /** The budgets of the upstream, and of each of its accounts. */
  readonly budgets: ReadonlyArray<NaiveLimit>
  readonly own: ReadonlyArray<ReadonlyArray<NaiveLimit>>
}

/** What a request asks for. Accounts have their numbers over all upstreams. */
export interface NaiveAsk {
  readonly _tag: "Ask"
  readonly targets: ReadonlyArray<readonly [upstream: number, model: "a" | "b"]>
  readonly avoid: ReadonlyArray<number>
  /** Which of its targets the accounts to avoid do not serve. */
  readonly failed: number | undefined
  readonly stay: number | undefined
  readonly pin: number | undefined
  readonly spread: "order" | "even"
  /** Milliseconds at a full first target before the others count. */
  readonly wait: number
  readonly patience: number
  /** The conversation. */
  readonly sticky: number | undefined
  readonly prefersTarget: boolean
  /** What it reserves of budgets; twice as much of strict ones. */
  readonly tokens: number
}

export type NaiveStep =
  | NaiveAsk
  /** What an attempt shows of the account of the `nth` lease. */
  | {
    readonly _tag: "Report"
    readonly nth: number
    readonly health: "ok" | "rate_limited" | "refused_login"
    readonly seconds: number
  }
  | { readonly _tag: "End"; readonly nth: number; readonly tokens: number }
  /** The server of the account of the `nth` lease takes no other request for its model. */
  | { readonly _tag: "Pause"; readonly nth: number; readonly seconds: number }
  | { readonly _tag: "Pass"; readonly seconds: number }
  /** The test of an account succeeds. */
  | { readonly _tag: "Test"; readonly account: number }

export interface NaiveCase {
  readonly upstreams: ReadonlyArray<NaiveUpstream>
  readonly steps: ReadonlyArray<NaiveStep>
}

const limitOf = (window: fc.Arbitrary<NaiveLimit["window"]>): fc.Arbitrary<NaiveLimit> =>
  fc.oneof(
    fc.record({
      window,
      requests: fc.integer({ min: 1, max: 4 }),
      strict: fc.constant(false)
    }),
    fc.record({
      window,
      tokens: fc.integer({ min: 5, max: 90 }),
      strict: fc.boolean()
    })
  )

/** The windows of the budgets of one upstream alone are over within a case: the pools of two return one after the other. */
const upstreamOf = (name: "one" | "two", isLimited: boolean): fc.Arbitrary<NaiveUpstream> => {
  const limit = limitOf(name === "one" ? fc.constantFrom("minute", "hour") : fc.constant("hour"))
  const limits = isLimited ? fc.array(limit, { maxLength: 1 }) : fc.constant([])
  return fc.record({
    name: fc.constant(name),
    perAccount: fc.integer({ min: 1, max: 2 }),
    queue: fc.integer({ min: 0, max: 3 }),
    accounts: fc.integer({ min: 1, max: 3 }),
    budgets: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: limits }),
    own: fc.tuple(limits, limits, limits)
  })
}

const targets: fc.Arbitrary<NaiveAsk["targets"]> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<NaiveAsk["targets"]>([[0, "a"]], [[1, "a"]]) },
  {
    weight: 4,
    arbitrary: fc.shuffledSubarray<NaiveAsk["targets"][number]>([[0, "a"], [0, "b"], [1, "a"], [1, "b"]], {
      minLength: 1
    })
  }
)

const account = fc.nat(5)
const nth = fc.nat(20)

const some = <A>(weight: number, arbitrary: fc.Arbitrary<A>): fc.Arbitrary<A | undefined> =>
  fc.oneof({ weight, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const ask: fc.Arbitrary<NaiveStep> = fc.record({
  _tag: fc.constant("Ask" as const),
  targets,
  avoid: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.subarray([0, 1, 2, 3, 4, 5], { maxLength: 3 }) }
  ),
  failed: some(3, fc.nat(3)),
  stay: some(9, account),
  pin: some(9, account),
  spread: fc.constantFrom("order" as const, "order" as const, "even" as const),
  // No wait ends at the same time as anything else.
  wait: fc.constantFrom(0, 0, 5_300),
  patience: fc.constantFrom(0, 1),
  sticky: some(2, fc.nat(1)),
  prefersTarget: fc.boolean(),
  tokens: fc.integer({ min: 1, max: 30 })
})

const stepOf = (isLimited: boolean): fc.Arbitrary<NaiveStep> =>
  fc.oneof(
    { weight: 12, arbitrary: ask },
    {
      weight: 5,
      arbitrary: fc.record({
        _tag: fc.constant("Report" as const),
        nth,
        health: fc.constantFrom(
          "ok" as const,
          "ok" as const,
          "ok" as const,
          "rate_limited" as const,
          "refused_login" as const
        ),
        seconds: fc.integer({ min: 1, max: 80 })
      })
    },
    { weight: 8, arbitrary: fc.record({ _tag: fc.constant("End" as const), nth, tokens: fc.nat(40) }) },
    {
      weight: isLimited ? 3 : 0,
      arbitrary: fc.record({
        _tag: fc.constant("Pause" as const),
        nth,
        seconds: fc.integer({ min: 1, max: 80 })
      })
    },
    {
      weight: 4,
      arbitrary: fc.record({ _tag: fc.constant("Pass" as const), seconds: fc.integer({ min: 1, max: 50 }) })
    },
    { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Test" as const), account }) }
  )

/**
 * Generated pools with what happens to them; of every three two have budgets and pauses. All requests of a case that wait have the same
 * patience, so that those which came first are those whose time is over first.
 */
export const decisionCase: fc.Arbitrary<NaiveCase> = fc.tuple(
  fc.constantFrom(true, true, false),
  fc.constantFrom(20_600, 100_600)
).chain(([isLimited, patience]) =>
  fc.record({
    upstreams: fc.tuple(upstreamOf("one", isLimited), upstreamOf("two", isLimited)),
    steps: fc.array(stepOf(isLimited), { minLength: 20, maxLength: 60, size: "max" }).map((steps) =>
      steps.map((step) => step._tag === "Ask" ? { ...step, patience: step.patience * patience } : step)
    )
  })
)

/** Added to the time of an account that has too little for a request for ever. */
const never = 2 ** 45

const lengths = { minute: 60_000, hour: 3_600_000 }

/** The sentences of refusals. */
export const sentences = {
  full: "The gateway is busy: all accounts are in use, and its queue is full. Retry later.",
  late: (seconds: number) =>
    seconds < 1
      ? "The gateway is busy: no account became free in time. Retry later."
      : `The gateway is busy: the request waited ${seconds} s for a free account. Retry later.`,
  limited: "The upstream limits the rate of all accounts that can serve this request. Retry later.",
  budget: "All accounts that can serve this request are at their budgets, or limited by their upstreams. Retry later.",
  unavailable: (reason: string | undefined) =>
    reason === undefined
      ? "No upstream account can be used: none is configured, or the upstream refuses them. Ask the gateway's operator."
      : `No upstream account can be used: ${reason}`,
  unknown: "X-Gateway-Target-Account names an account that does not exist. Name another account, or remove the header.",
  otherUpstream: (upstream: string, targets: ReadonlyArray<string>) =>
    `X-Gateway-Target-Account names an account of the upstream "${upstream}", but "m" is served by ${
      targets.map((name) => `"${name}"`).join(", ")
    }. Name another account, or remove the header.`
}

interface Account {
  readonly id: number
  readonly upstream: number
  readonly limits: ReadonlyArray<NaiveLimit>
  inUse: number
  health: "ready" | "cooling" | "out"
  until: number
  epoch: number
  readonly pauses: Map<string, number>
  lastGiven: number
}

/** What a request has used of budgets, or has reserved. */
interface Use {
  readonly account: Account
  readonly at: number
  readonly tokens: number
  used: number | undefined
}

/** A granted request. */
export interface Held {
  readonly id: number
  readonly account: Account
  readonly epoch: number
  readonly use: Use
  readonly asked: NaiveAsk
}

/** Where a request may take a slot: one account, or any but those that it avoids. */
interface Place {
  readonly upstream: number
  readonly only: Account | undefined
}

interface Waiter {
  readonly id: number
  readonly asked: NaiveAsk
  readonly since: number
  readonly preferred: Account | undefined
  readonly spread: "order" | "even"
  places: Array<Place>
  /** The places that it takes once its hold at the first one is over. */
  later: ReadonlyArray<Place>
  readonly holdUntil: number
  /** When it may be granted first in its stay, and what follows its refusal. */
  readonly fallback: ReadonlyArray<Place>
  /** Why it has given places up. */
  lost: Why | undefined
}

/** What becomes of a request. `seconds` is the time after which it may come again; `undefined` for one that is not compared. */
export type Outcome =
  | { readonly _tag: "Granted"; readonly account: number; readonly model: string }
  | { readonly _tag: "Refused"; readonly message: string; readonly seconds: number | undefined }
  | { readonly _tag: "Waiting" }

type Why = { readonly _tag: "Cooling"; readonly until: number } | { readonly _tag: "Unavailable" }

const soonerOf = (one: Why | undefined, other: Why): Why =>
  one === undefined || one._tag === "Unavailable" || (other._tag === "Cooling" && other.until < one.until) ? other : one

export class NaiveDecision {
  now: number
  readonly upstreams: ReadonlyArray<NaiveUpstream>
  readonly accounts: ReadonlyArray<Account>
  readonly outcomes: Array<Outcome> = []
  held: Array<Held> = []
  #waiters: Array<Waiter> = []
  readonly #uses: Array<Use> = []
  readonly #conversations = new Map<number, { readonly account: Account; readonly until: number }>()
  readonly #hasBudgets: boolean
  #given = 0

  constructor(upstreams: ReadonlyArray<NaiveUpstream>, now: number) {
    this.now = now
    this.upstreams = upstreams
    this.#hasBudgets = upstreams.some(({ accounts, budgets, own }) =>
      budgets.length > 0 || own.slice(0, accounts).some((each) => each.length > 0)
    )
    this.accounts = upstreams.flatMap(({ accounts, own }, upstream) =>
      Array.from({ length: accounts }, (_, i): Account => ({
        id: upstream * 3 + i,
        upstream,
        limits: own[i]!,
        inUse: 0,
        health: "ready",
        until: 0,
        epoch: 0,
        pauses: new Map(),
        lastGiven: i - 1_000
      }))
    )
  }

  #account(id: number | undefined): Account | undefined {
    return this.accounts.find((account) => account.id === id)
  }

  #of(upstream: number): ReadonlyArray<Account> {
    return this.accounts.filter((account) => account.upstream === upstream)
  }

  /** What the tries that began in a window have used or reserved. */
  #counts({ strict, window }: NaiveLimit, isOf: (account: Account) => boolean) {
    const start = Math.floor(this.now / lengths[window]) * lengths[window]
    const here = this.#uses.filter(({ account, at }) => at >= start && isOf(account))
    const tokens = here.reduce((sum, { tokens, used }) => sum + (used ?? (strict ? 2 * tokens : tokens)), 0)
    return { requests: here.length, tokens, end: start + lengths[window] }
  }

  /** Until when limits leave no room for tokens; 0 while they do. Nothing at all fits in what is used up. */
  #fullUntil(
    limits: ReadonlyArray<NaiveLimit>,
    isOf: (account: Account) => boolean,
    asked: number | undefined
  ): number {
    return Math.max(
      0,
      ...limits.map((limit) => {
        const { end, requests, tokens } = this.#counts(limit, isOf)
        const own = asked === undefined ? 0 : limit.strict ? 2 * asked : asked
        const isFull = requests >= (limit.requests ?? Infinity) ||
          (asked === undefined ? tokens >= (limit.tokens ?? Infinity) : tokens + own > (limit.tokens ?? Infinity))
        return isFull ? own > (limit.tokens ?? Infinity) ? end + never : end : 0
      })
    )
  }

  #budgetUntil(account: Account, tokens: number | undefined): number {
    return Math.max(
      this.#fullUntil(account.limits, (other) => other === account, tokens),
      this.#fullUntil(this.upstreams[account.upstream]!.budgets, (other) => other.upstream === account.upstream, tokens)
    )
  }

  /** The model for which an account serves a request, if it is out for none of its models. */
  #modelFor(account: Account, asked: NaiveAsk): string | undefined {
    return this.#modelsAt(account, asked).find(([, until]) => until <= this.now)?.[0]
  }

  /** The models of a request at an account's upstream, and until when the account is out for each; infinity where the request has failed. */
  #modelsAt(account: Account, { avoid, failed, targets }: NaiveAsk): ReadonlyArray<readonly [string, number]> {
    return targets.flatMap(([upstream, model], nth) => {
      if (upstream !== account.upstream) return []
      const hasFailed = nth === failed && avoid.includes(account.id)
      return [[model, hasFailed ? Infinity : account.pauses.get(model) ?? 0]]
    })
  }

  /** Until when an account is out for all models of a request; 0 if it serves one of them. */
  #pausedUntil(account: Account, asked: NaiveAsk): number {
    if (this.#modelFor(account, asked) !== undefined) return 0
    return Math.min(...this.#modelsAt(account, asked).map(([, until]) => until))
  }

  /** When an account is in rotation: 0 for now, infinity if that is unknown. */
  #inRotationAt(account: Account): number {
    if (account.health === "out") return Infinity
    return Math.max(account.health === "cooling" ? account.until : 0, this.#budgetUntil(account, undefined))
  }

  /** When an account may serve a request: 0 for now, infinity if that is unknown. */
  #readyAt(account: Account, asked: NaiveAsk): number {
    return Math.max(
      this.#inRotationAt(account),
      this.#pausedUntil(account, asked),
      this.#budgetUntil(account, asked.tokens)
    )
  }

  #accountsAt({ only, upstream }: Place): ReadonlyArray<Account> {
    return only === undefined ? this.#of(upstream) : [only]
  }

  /** The account that a place has for a request now. */
  #freeAt(place: Place, asked: NaiveAsk, preferred: Account | undefined): Account | undefined {
    const ready = this.#accountsAt(place).filter((account) => this.#readyAt(account, asked) === 0)
    const isFree = ({ inUse, upstream }: Account) => inUse < this.upstreams[upstream]!.perAccount
    if (place.only !== undefined) return ready.find(isFree)
    const wanted = ready.filter(({ id }) => !asked.avoid.includes(id))
    if (preferred !== undefined && wanted.includes(preferred) && isFree(preferred)) return preferred
    const those = wanted.length > 0 ? wanted : ready
    return those.filter(isFree).toSorted((a, b) => a.lastGiven - b.lastGiven)[0]
  }

  /** Why a place serves a request no earlier than a time. Without `asked`, what keeps it from all requests counts alone. */
  #whyNot(place: Place, asked: NaiveAsk | undefined, deadline: number): Why | undefined {
    const at = Math.min(
      Infinity,
      ...this.#accountsAt(place).map((account) =>
        asked === undefined ? this.#inRotationAt(account) : this.#readyAt(account, asked)
      )
    )
    return at === Infinity
      ? { _tag: "Unavailable" }
      : at > Math.max(0, deadline)
      ? { _tag: "Cooling", until: at }
      : undefined
  }

  #freeShare(upstream: number): number {
    const { perAccount } = this.upstreams[upstream]!
    const inRotation = this.#of(upstream).filter((account) =>
      account.health === "ready" && this.#budgetUntil(account, undefined) === 0
    )
    const all = inRotation.length * perAccount
    const inUse = this.#of(upstream).reduce((sum, account) => sum + account.inUse, 0)
    return all === 0 ? 0 : (all - inUse) / all
  }

  #choose(
    places: ReadonlyArray<Place>,
    asked: NaiveAsk,
    spread: "order" | "even",
    preferred: Account | undefined
  ): Account | undefined {
    let best: Account | undefined
    let share = -Infinity
    for (const place of places) {
      const account = this.#freeAt(place, asked, preferred)
      if (account === undefined) continue
      if (spread === "order") return account
      const free = this.#freeShare(place.upstream)
      if (free > share) {
        best = account
        share = free
      }
    }
    return best
  }

  #give(id: number, asked: NaiveAsk, account: Account): void {
    account.inUse++
    account.lastGiven = ++this.#given
    const use: Use = { account, at: this.now, tokens: asked.tokens, used: undefined }
    this.#uses.push(use)
    this.held.push({ id, account, epoch: account.epoch, use, asked })
    this.outcomes[id] = { _tag: "Granted", account: account.id, model: this.#modelFor(account, asked)! }
  }

  #refuse(id: number, message: string, seconds: number | undefined): void {
    this.outcomes[id] = { _tag: "Refused", message, seconds }
  }

  #refuseFor(id: number, why: Why, { targets }: NaiveAsk): void {
    if (why._tag === "Cooling") {
      const until = why.until < never ? why.until : why.until - never
      const seconds = Math.max(1, Math.ceil((until - this.now) / 1_000))
      return this.#refuse(id, this.#hasBudgets ? sentences.budget : sentences.limited, seconds)
    }
    const upstreams = this.#upstreamsOf(targets)
    const all = this.accounts.filter(({ upstream }) => upstreams.includes(upstream))
    const isOut = all.every(({ health }) => health === "out")
    this.#refuse(id, sentences.unavailable(isOut ? "the upstream refuses its login" : undefined), undefined)
  }

  #hasPlace({ upstream }: Place): boolean {
    const waiting = this.#waiters.filter(({ places }) => places.some((place) => place.upstream === upstream))
    return waiting.length < this.upstreams[upstream]!.queue
  }

  /** A request's upstreams, each once, in order. */
  #upstreamsOf(targets: NaiveAsk["targets"]): ReadonlyArray<number> {
    return [...new Set(targets.map(([upstream]) => upstream))]
  }

  ask(asked: NaiveAsk): void {
    this.#ask(asked)
    // The request can use up a budget, which changes what the waiters get.
    this.serve()
  }

  #ask(asked: NaiveAsk): void {
    const id = this.outcomes.push({ _tag: "Waiting" }) - 1
    const known = asked.sticky === undefined ? undefined : this.#conversations.get(asked.sticky)
    const last = known !== undefined && this.now < known.until ? known.account : undefined
    const isTargetPreferred = last !== undefined && asked.prefersTarget
    const inOrder = this.#upstreamsOf(asked.targets)
    const upstreams = isTargetPreferred
      ? inOrder.toSorted((a, b) => Number(b === last.upstream) - Number(a === last.upstream))
      : inOrder
    const spread = isTargetPreferred ? "order" : asked.spread
    const wait = isTargetPreferred ? 0 : asked.wait
    if (asked.pin !== undefined) {
      const only = this.#account(asked.pin)
      if (only === undefined) return this.#refuse(id, sentences.unknown, undefined)
      if (!upstreams.includes(only.upstream)) {
        const names = upstreams.map((upstream) => this.upstreams[upstream]!.name)
        return this.#refuse(id, sentences.otherUpstream(this.upstreams[only.upstream]!.name, names), undefined)
      }
      return this.#claim(id, asked, this.now, [{ upstream: only.upstream, only }], spread, 0, last, [])
    }
    const any = upstreams.map((upstream): Place => ({ upstream, only: undefined }))
    const stay = this.#account(asked.stay)
    const isStaying = stay !== undefined && upstreams.includes(stay.upstream) && stay.health === "ready" &&
      this.#fullUntil(stay.limits, (other) => other === stay, undefined) === 0 &&
      this.#budgetUntil(stay, asked.tokens) === 0 && this.#pausedUntil(stay, asked) === 0
    if (isStaying) this.#claim(id, asked, this.now, [{ upstream: stay.upstream, only: stay }], spread, wait, last, any)
    else this.#claim(id, asked, this.now, any, spread, wait, last, [])
  }

  #claim(
    id: number,
    asked: NaiveAsk,
    since: number,
    places: ReadonlyArray<Place>,
    spread: "order" | "even",
    wait: number,
    preferred: Account | undefined,
    fallback: ReadonlyArray<Place>
  ): void {
    const refused = (then: () => void): void =>
      fallback.length === 0 ? then() : this.#claim(id, asked, since, fallback, spread, wait, preferred, [])
    const deadline = since + asked.patience
    let why: Why | undefined
    const able = places.filter((place) => {
      const refusal = this.#whyNot(place, asked, deadline)
      if (refusal !== undefined) why = soonerOf(why, refusal)
      return refusal === undefined
    })
    const [first] = able
    if (first === undefined) return refused(() => this.#refuseFor(id, why ?? { _tag: "Unavailable" }, asked))
    const isReady = (place: Place) => this.#whyNot(place, asked, 0) === undefined
    const holds = wait > 0 && able.length > 1 && first === places[0] && isReady(first) &&
      this.#freeAt(first, asked, preferred) === undefined && this.#hasPlace(first)
    const account = holds ? undefined : this.#choose(able, asked, spread, preferred)
    if (account !== undefined) return this.#give(id, asked, account)
    const joined = (holds ? [first] : able).filter((place) => this.#hasPlace(place))
    if (joined.length === 0) {
      let now = why
      for (const place of able) {
        const refusal = this.#whyNot(place, asked, this.now)
        if (refusal === undefined) return refused(() => this.#refuse(id, sentences.full, 2))
        now = soonerOf(now, refusal)
      }
      return refused(() => this.#refuseFor(id, now!, asked))
    }
    if (deadline <= this.now) return this.#refuse(id, sentences.late(Math.floor((this.now - since) / 1_000)), 2)
    this.#waiters.push({
      id,
      asked,
      since,
      preferred,
      spread,
      places: joined,
      later: holds ? able.slice(1) : [],
      holdUntil: holds && this.now + wait < deadline ? this.now + wait : Infinity,
      fallback,
      lost: undefined
    })
  }

  /** Refuses the waiters that no account serves in time, and serves the others in the order of their arrival. */
  serve(): void {
    for (let isChanged = true; isChanged;) {
      isChanged = false
      for (const waiter of this.#waiters) {
        if (this.#review(waiter)) {
          isChanged = true
          break
        }
        const account = this.#choose(waiter.places, waiter.asked, waiter.spread, waiter.preferred)
        if (account === undefined) continue
        this.#leave(waiter)
        this.#give(waiter.id, waiter.asked, account)
        isChanged = true
        break
      }
    }
  }

  #leave(waiter: Waiter): void {
    this.#waiters = this.#waiters.filter((other) => other !== waiter)
  }

  /** Widens or refuses a waiter whose places serve it no more; returns whether something changed. */
  #review(waiter: Waiter): boolean {
    const deadline = waiter.since + waiter.asked.patience
    const first = waiter.places[0]!
    const isReady = this.#whyNot(first, undefined, 0) === undefined
    if (waiter.later.length > 0 && (!isReady || waiter.holdUntil <= this.now)) {
      this.#widen(waiter, deadline)
      return true
    }
    const lost = waiter.places.filter((place) => this.#whyNot(place, undefined, deadline) !== undefined)
    if (lost.length === 0) return false
    for (const place of lost) waiter.lost = soonerOf(waiter.lost, this.#whyNot(place, undefined, deadline)!)
    if (lost.length < waiter.places.length) {
      waiter.places = waiter.places.filter((place) => !lost.includes(place))
      return true
    }
    this.#leave(waiter)
    if (waiter.fallback.length > 0) {
      this.#claimLater(waiter)
      return true
    }
    this.#refuseFor(waiter.id, waiter.lost!, waiter.asked)
    return true
  }

  #claimLater({ asked, fallback, id, preferred, since, spread }: Waiter): void {
    this.#claim(id, asked, since, fallback, spread, asked.wait, preferred, [])
  }

  #widen(waiter: Waiter, deadline: number): void {
    const places = waiter.later.filter((place) => {
      const why = this.#whyNot(place, waiter.asked, deadline)
      if (why !== undefined) waiter.lost = soonerOf(waiter.lost, why)
      return why === undefined && this.#hasPlace(place)
    })
    waiter.later = []
    waiter.places = [...waiter.places, ...places]
  }

  report(held: Held, health: "ok" | "rate_limited" | "refused_login", seconds: number): void {
    const { account, asked, epoch } = held
    const isFresh = epoch === account.epoch
    if (health === "ok") {
      if (asked.sticky !== undefined) {
        this.#conversations.set(asked.sticky, { account, until: this.now + 3_600_000 })
      }
      if (isFresh) account.health = "ready"
    } else if (health === "rate_limited") {
      if (account.health === "out") return
      const spent = this.#fullUntil(account.limits, (other) => other === account, undefined)
      const until = Math.max(account.health === "cooling" ? account.until : 0, spent)
      if (isFresh) account.epoch++
      else if (until === 0 || this.now + seconds * 1_000 <= until) return
      account.health = "cooling"
      account.until = this.now + seconds * 1_000
    } else if (isFresh || account.health !== "out") {
      account.epoch++
      account.health = "out"
    }
    this.serve()
  }

  end(held: Held, tokens: number): void {
    this.held = this.held.filter((other) => other !== held)
    held.account.inUse--
    held.use.used = tokens
    this.serve()
  }

  pause({ account }: Held, model: string, seconds: number): void {
    const until = this.now + seconds * 1_000
    account.pauses.set(model, Math.max(until, account.pauses.get(model) ?? 0))
    this.serve()
  }

  test(id: number): void {
    const account = this.#account(id)
    if (account === undefined) return
    account.health = "ready"
    account.pauses.clear()
    this.serve()
  }

  /** Lets time pass up to the next thing that is due, `until` at the latest; returns that time. */
  pass(until: number): number {
    const minute = Math.floor(this.now / lengths.minute) * lengths.minute + lengths.minute
    const due = [
      until,
      minute,
      ...this.accounts.flatMap((account) => [account.until, ...account.pauses.values()]),
      ...this.#waiters.flatMap(({ asked, holdUntil, since }) => [holdUntil, since + asked.patience])
    ]
    this.now = Math.min(...due.filter((time) => time > this.now))
    for (const account of this.accounts) {
      if (account.health === "cooling" && account.until <= this.now) account.health = "ready"
    }
    this.serve()
    for (const waiter of this.#waiters) if (waiter.since + waiter.asked.patience <= this.now) this.#late(waiter)
    return this.now
  }

  #late(waiter: Waiter): void {
    const { asked, id, places, since } = waiter
    this.#leave(waiter)
    let why = waiter.lost
    const isLate = waiter.later.length > 0 || places.some((place) => {
      const refusal = this.#whyNot(place, asked, -Infinity)
      if (refusal !== undefined) why = soonerOf(why, refusal)
      return refusal === undefined
    })
    if (isLate || why === undefined) this.#refuse(id, sentences.late(Math.floor((this.now - since) / 1_000)), 2)
    else if (waiter.fallback.length > 0) this.#claimLater(waiter)
    else this.#refuseFor(id, why, asked)
  }
}

const plainAsk: NaiveAsk = {
  _tag: "Ask",
  targets: [[0, "a"]],
  avoid: [],
  failed: undefined,
  stay: undefined,
  pin: undefined,
  spread: "order",
  wait: 0,
  patience: 0,
  sticky: undefined,
  prefersTarget: false,
  tokens: 1
}

/** A request waits for a busy account, whose budget has too little for it once the account is free: it gets it with the next window. */
export const fullOnceFree: NaiveCase = {
  upstreams: [
    {
      name: "one",
      perAccount: 1,
      queue: 1,
      accounts: 2,
      budgets: [],
      own: [[{ window: "minute", tokens: 7, strict: false }], [{ window: "minute", tokens: 5, strict: false }], []]
    },
    { name: "two", perAccount: 1, queue: 0, accounts: 1, budgets: [], own: [[], [], []] }
  ],
  steps: [
    plainAsk,
    { ...plainAsk, tokens: 6, patience: 100_600 },
    { _tag: "End", nth: 0, tokens: 2 },
    { _tag: "Pass", seconds: 60 }
  ]
}
