/**
 * Slows guesses of credentials. After too many wrong credentials the checks of an address wait in a queue, with a pause
 * between two of them, so that guessing is slow and a right key still gets in. Times are monotonic.
 *
 * A credential that was right from the address within the last day skips the queue. Such a lookup reveals as much as a check,
 * so lookups wait in a queue of their own, with shorter pauses, and only for addresses that an operator uses. Right and wrong
 * credentials wait alike. The wait is bounded, so that a flood slows a right credential and does not lock it out.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { formatAddress, formatPrefix, parseAddress } from "../domain/addresses.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import { remembering } from "../domain/remembering.ts"
import { monotonicMillis } from "../domain/time.ts"

/** Wrong credentials within a minute that slow an address. */
export const wrongAMinute = 5
/** Wrong credentials within ten minutes that slow it more. */
export const wrongInTenMinutes = 200
/** Bounds the credentials of one address that wait for their check. */
export const mostWaiting = 64
/** Bounds the credentials of one address that wait for their lookup. */
const mostLooking = 4_096
/** Failed lookups within ten minutes that slow the lookups of an address. */
export const missedInTenMinutes = 2_000
/** Bounds the known addresses; the one whose last wrong credential is oldest is dropped first. */
export const mostSources = 10_000

const minute = 60_000
/** Milliseconds between two checks of a slowed address, and of one that is slowed more. */
const pause = 250
const longPause = 1000
/** Milliseconds between two lookups, and between two slowed ones. */
const lookupPause = 25
const longLookupPause = 250
/** Pauses after which a lookup has its turn, however many wait, so that no flood locks a right credential out. */
const mostPauses = 100

/** The queue of the address is full. `retryAfter` in seconds. */
export class QueueFull extends Schema.TaggedError<QueueFull>()("QueueFull", { retryAfter: Schema.Int }) {}

/** The refusal of a login whose queue is full. */
export const tooManyLogins = ({ retryAfter }: Pick<QueueFull, "retryAfter">) =>
  Effect.fail(gatewayError("rate_limit_exceeded", "Too many wrong logins from this address", { retryAfter }))

/** Counts events within a window that begins with the first event. */
class WindowCount {
  readonly #length: number
  count = 0
  ends = Number.NEGATIVE_INFINITY

  constructor(length: number) {
    this.#length = length
  }

  add(now: number): void {
    if (this.ends <= now) {
      this.count = 0
      this.ends = now + this.#length
    }
    this.count++
  }

  at(now: number): number {
    return this.ends > now ? this.count : 0
  }
}

/** A queue that admits one waiter after another; `pause` returns the milliseconds between two of them. None waits longer than `mostPauses` pauses. */
class PacedQueue {
  readonly #one = Semaphore.makeUnsafe(1)
  readonly #most: number
  readonly #mostPauses: number
  readonly #pause: (now: number) => number
  #last = Number.NEGATIVE_INFINITY
  waiting = 0

  constructor(most: number, pause: (now: number) => number, mostPauses = Number.POSITIVE_INFINITY) {
    this.#most = most
    this.#mostPauses = mostPauses
    this.#pause = pause
  }

  /** Waits to be admitted. Fails if the queue is full. */
  enter(clock: Clock.Clock): Effect.Effect<void, QueueFull> {
    return Effect.suspend(() => {
      const began = monotonicMillis(clock)
      const between = this.#pause(began)
      if (this.waiting >= this.#most) {
        return Effect.fail(new QueueFull({ retryAfter: Math.max(1, Math.ceil(this.waiting * between / 1000)) }))
      }
      this.waiting++
      const due = Effect.suspend(() => {
        const now = monotonicMillis(clock)
        const pause = this.#pause(now)
        const left = (pause === 0 ? 0 : Math.min(this.#last + pause, began + this.#mostPauses * pause)) - now
        return left > 0 ? Effect.sleep(left) : Effect.void
      })
      const entered = Effect.andThen(
        due,
        Effect.sync(() => {
          this.#last = monotonicMillis(clock)
        })
      )
      return Effect.ensuring(this.#one.withPermit(entered), Effect.sync(() => this.waiting--))
    })
  }
}

/** The counts and queues of one address. */
class Source {
  readonly short = new WindowCount(minute)
  readonly long = new WindowCount(10 * minute)
  /** Failed lookups. */
  readonly missed = new WindowCount(10 * minute)
  readonly checks = new PacedQueue(mostWaiting, (now) => this.pause(now))
  readonly lookups = new PacedQueue(
    mostLooking,
    (now) => this.missed.at(now) >= missedInTenMinutes ? longLookupPause : lookupPause,
    mostPauses
  )
  /** Running checks; they count as wrong until they finish. */
  checking = 0

  /** Milliseconds between two checks; 0 if the address is not slowed. */
  pause(now: number): number {
    if (this.long.at(now) + this.checking >= wrongInTenMinutes) return longPause
    return this.short.at(now) + this.checking >= wrongAMinute ? pause : 0
  }

  isIdle(now: number): boolean {
    return this.checking === 0 && this.checks.waiting === 0 && this.lookups.waiting === 0 && this.long.at(now) === 0
  }
}

/** Bits of the prefix of an IPv6 address that one subscriber has. */
const subscriberBits = 64

/** The name that an address is counted under: an IPv4 address, also one mapped into IPv6, or the /64 of an IPv6 address. */
export const sourceOf = remembering((text) => {
  const address = parseAddress(text)
  if (address === undefined) return text
  return address.family === 4 ? formatAddress(address) : formatPrefix(address, subscriberBits)
})

export interface CredentialThrottle {
  /**
   * Runs a check of a credential, after a wait if the address is slowed, and counts a wrong one. Fails with `QueueFull`
   * without a check if too many wait. Only a check with `credential` may skip the queue.
   */
  readonly check: <E, R>(
    address: string,
    check: Effect.Effect<boolean, E, R>,
    credential?: string
  ) => Effect.Effect<boolean, E | QueueFull, R>
  /** Whether a credential was right from the address within the last day. Not throttled: for use within a check. */
  readonly wasRight: (address: string, credential: string) => boolean
  /** Milliseconds until an address is no longer slowed; 0 if it is not. */
  readonly slowedFor: (address: string) => Effect.Effect<number>
}

/** What the nodes of a gateway share about wrong credentials of one kind. Names are hashes. */
export interface SharedFailures {
  /** The name of an address among nodes. */
  readonly nameOf: (address: string) => string
  /** Notifies the other nodes of a wrong credential from the address of that name. */
  readonly wrong: (name: string) => void
  /** Registers a listener for wrong credentials at other nodes. */
  readonly onWrong: (listener: (name: string) => void) => void
}

/** What the nodes of a gateway share about logins. Credentials of other nodes are hashes. */
export interface SharedLogins extends SharedFailures {
  /** Records a credential that was right from the address of that name. */
  readonly right: (name: string, credential: string) => void
  readonly wasRight: (name: string, credential: string) => boolean
  /** Whether any credential was right from there within the last day. */
  readonly knowsRight: (name: string) => boolean
}

/** For a single process. */
export const notShared: SharedFailures = {
  nameOf: (address) => address,
  wrong: () => undefined,
  onWrong: () => undefined
}

/** For credentials without a lane of their own. */
const unknownRights: Omit<SharedLogins, keyof SharedFailures> = {
  right: () => undefined,
  wasRight: () => false,
  knowsRight: () => false
}

/** Makes the throttle of all addresses. `clock` times the wrong credentials of other nodes. */
export const makeCredentialThrottle = (
  given: SharedLogins | SharedFailures = notShared,
  clock?: Clock.Clock
): CredentialThrottle => {
  const shared: SharedLogins = { ...unknownRights, ...given }
  /** Roughly in the order of their last wrong credential. */
  const sources = new Map<string, Source>()

  const nameOf = (address: string): string => shared.nameOf(sourceOf(address))

  const sourceNamed = (name: string, now: number): Source => {
    const known = sources.get(name)
    if (known !== undefined) return known
    for (const [oldest, source] of sources) {
      if (sources.size < mostSources && !source.isIdle(now)) break
      sources.delete(oldest)
    }
    const made = new Source()
    sources.set(name, made)
    return made
  }

  /** Counts a wrong credential. */
  const count = (name: string, source: Source, now: number) => {
    source.short.add(now)
    source.long.add(now)
    sources.delete(name)
    sources.set(name, source)
  }

  if (clock !== undefined) {
    shared.onWrong((name) => {
      const now = monotonicMillis(clock)
      count(name, sourceNamed(name, now), now)
    })
  }

  const ofClock = <A, E, R>(f: (clock: Clock.Clock) => Effect.Effect<A, E, R>) => Effect.flatMap(Clock.Clock, f)

  const checked = <E, R>(
    name: string,
    source: Source,
    check: Effect.Effect<boolean, E, R>,
    clock: Clock.Clock,
    credential: string | undefined
  ) =>
    Effect.suspend(() => {
      source.checking++
      return Effect.ensuring(check, Effect.sync(() => source.checking--))
    }).pipe(
      Effect.tap((right) =>
        Effect.sync(() => {
          const now = monotonicMillis(clock)
          if (!right) {
            count(name, source, now)
            shared.wrong(name)
            return
          }
          if (credential !== undefined) shared.right(name, credential)
          if (source.isIdle(now) && sources.get(name) === source) sources.delete(name)
        })
      )
    )

  /** Waits for a lookup: whether the credential skips the queue. */
  const maySkip = (name: string, source: Source, clock: Clock.Clock, credential: string) =>
    Effect.map(source.lookups.enter(clock), () => {
      if (shared.wasRight(name, credential)) return true
      source.missed.add(monotonicMillis(clock))
      return false
    })

  return {
    check: <E, R>(address: string, check: Effect.Effect<boolean, E, R>, credential?: string) =>
      ofClock((clock): Effect.Effect<boolean, E | QueueFull, R> => {
        const now = monotonicMillis(clock)
        const name = nameOf(address)
        const source = sourceNamed(name, now)
        const checking = checked(name, source, check, clock, credential)
        if (source.pause(now) === 0) return checking
        const queued = Effect.andThen(source.checks.enter(clock), checking)
        return credential === undefined || !shared.knowsRight(name)
          ? queued
          : Effect.flatMap(maySkip(name, source, clock, credential), (skips) => skips ? checking : queued)
      }),
    wasRight: (address, credential) => shared.wasRight(nameOf(address), credential),
    slowedFor: (address) =>
      ofClock((clock) => {
        const now = monotonicMillis(clock)
        const source = sources.get(nameOf(address))
        if (source === undefined) return Effect.succeed(0)
        if (source.long.at(now) >= wrongInTenMinutes) return Effect.succeed(source.long.ends - now)
        return Effect.succeed(source.short.at(now) > wrongAMinute ? source.short.ends - now : 0)
      })
  }
}
