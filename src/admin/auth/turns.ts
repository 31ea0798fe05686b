/**
 * Turns of addresses: one that has had too many wrong credentials has them checked at a pace, in order, so that guessing
 * is slow and a right key still gets in. Times are monotonic.
 *
 * A credential that was right from the address of late has a lane of its own. Looking whether it was tells as much as a check,
 * so looks have a pace and an order too: a faster one, and only at addresses that an operator uses.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { isIPv6 } from "node:net"
import { monotonicMillis } from "../../domain/monotonicMillis.ts"

/** Wrong credentials in a minute after which an address is slowed. */
export const wrongAMinute = 5
/** Wrong credentials in ten minutes after which it is slowed more. */
export const wrongInTenMinutes = 200
/** Credentials of one address that wait for their turn. */
export const mostWaiting = 64
/** Credentials of one address that wait to be looked for among those that were right. */
export const mostLooking = 256
/** Those that were not among them in ten minutes after which looks are slowed. */
export const missedInTenMinutes = 2_000
/** Addresses that are known; those that were wrong longest ago are forgotten first. */
export const mostSources = 10_000

const minute = 60_000
/** Milliseconds between two checks of a slowed address, and of one that is slowed more. */
const pause = 250
const longPause = 1000
/** Milliseconds between two looks, and where these are slowed. */
const lookPause = 25
const longLookPause = 250

/** Too many credentials of the address wait already. `retryAfter` in seconds. */
export class Crowded extends Schema.TaggedError<Crowded>()("Crowded", { retryAfter: Schema.Int }) {}

/** A count within a time that begins with the first one. */
class Count {
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

/** Turns one after another; `pause` gives the milliseconds between two of them. */
class Line {
  readonly #one = Semaphore.makeUnsafe(1)
  readonly #most: number
  readonly #pause: (now: number) => number
  #last = Number.NEGATIVE_INFINITY
  waiting = 0

  constructor(most: number, pause: (now: number) => number) {
    this.#most = most
    this.#pause = pause
  }

  /** Waits for the next turn, and takes it. Fails where too many wait. */
  turn(clock: Clock.Clock): Effect.Effect<void, Crowded> {
    return Effect.suspend(() => {
      const between = this.#pause(monotonicMillis(clock))
      if (this.waiting >= this.#most) {
        return Effect.fail(new Crowded({ retryAfter: Math.max(1, Math.ceil(this.waiting * between / 1000)) }))
      }
      this.waiting++
      const due = Effect.suspend(() => {
        const now = monotonicMillis(clock)
        const left = this.#last + this.#pause(now) - now
        return left > 0 ? Effect.sleep(left) : Effect.void
      })
      const taken = Effect.andThen(
        due,
        Effect.sync(() => {
          this.#last = monotonicMillis(clock)
        })
      )
      return Effect.ensuring(this.#one.withPermit(taken), Effect.sync(() => this.waiting--))
    })
  }
}

class Source {
  readonly short = new Count(minute)
  readonly long = new Count(10 * minute)
  /** Credentials that were looked for among those that were right, and were not among them. */
  readonly missed = new Count(10 * minute)
  readonly line = new Line(mostWaiting, (now) => this.pause(now))
  readonly looks = new Line(
    mostLooking,
    (now) => this.missed.at(now) >= missedInTenMinutes ? longLookPause : lookPause
  )
  /** Credentials that are being checked: they may all be wrong. */
  checking = 0

  /** Milliseconds between two turns; 0 where there is no need for turns. */
  pause(now: number): number {
    if (this.long.at(now) + this.checking >= wrongInTenMinutes) return longPause
    return this.short.at(now) + this.checking >= wrongAMinute ? pause : 0
  }

  isIdle(now: number): boolean {
    return this.checking === 0 && this.line.waiting === 0 && this.looks.waiting === 0 && this.long.at(now) === 0
  }
}

/** The first four groups of an IPv6 address: what one subscriber has. */
const prefixOf = (address: string): string => {
  const [head = "", tail] = address.replace(/%.*$/, "").toLowerCase().split("::")
  const groups = (text: string) => text === "" ? [] : text.split(":")
  const before = groups(head)
  const after = tail === undefined ? [] : groups(tail)
  const filled = [
    ...before,
    ...Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => "0"),
    ...after
  ]
  return `${filled.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, "")).join(":")}::/64`
}

/** What an address counts as: itself, or an IPv6 address's /64. An IPv4 address within IPv6 is the IPv4 address. */
export const sourceOf = (address: string): string => {
  const embedded = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (embedded !== undefined) return embedded
  return isIPv6(address.replace(/%.*$/, "")) ? prefixOf(address) : address
}

export interface Turns {
  /**
   * Runs a check of a credential in the address's turn, and counts it where it says that the credential is wrong. Fails
   * with `Crowded`, unchecked, where too many wait. A credential without its text has no lane.
   */
  readonly inTurn: <E, R>(
    address: string,
    check: Effect.Effect<boolean, E, R>,
    credential?: string
  ) => Effect.Effect<boolean, E | Crowded, R>
  /** Whether a credential was right from an address of late: for checks, which have had their turn. */
  readonly wasRight: (address: string, credential: string) => boolean
  /** Milliseconds until an address is no longer slowed; 0 where it is not. */
  readonly slowedFor: (address: string) => Effect.Effect<number>
}

/** How turns go by what other nodes know. */
export interface SharedTurns {
  /** A name that stands for an address among nodes. */
  readonly nameOf: (address: string) => string
  /** Tells the other nodes of a wrong credential from the address of that name. */
  readonly wrong: (name: string) => void
  /** Hears of wrong credentials that other nodes were sent. */
  readonly onWrong: (listener: (name: string) => void) => void
  /** Remembers a credential that was right from the address of that name. */
  readonly right: (name: string, credential: string) => void
  readonly wasRight: (name: string, credential: string) => boolean
  /** Whether any credential was right from there of late. */
  readonly knowsRight: (name: string) => boolean
}

const alone: SharedTurns = {
  nameOf: (address) => address,
  wrong: () => undefined,
  onWrong: () => undefined,
  right: () => undefined,
  wasRight: () => false,
  knowsRight: () => false
}

/** Makes the turns of all addresses. `clock` times what other nodes tell. */
export const makeTurns = (shared: SharedTurns = alone, clock?: Clock.Clock): Turns => {
  /** In the order of their last wrong credential, roughly. */
  const sources = new Map<string, Source>()

  const nameOf = (address: string): string => shared.nameOf(sourceOf(address))

  const named = (name: string, now: number): Source => {
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
      count(name, named(name, now), now)
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

  /** Waits for a look: whether a credential has a lane of its own. */
  const hasLane = (name: string, source: Source, clock: Clock.Clock, credential: string) =>
    Effect.map(source.looks.turn(clock), () => {
      if (shared.wasRight(name, credential)) return true
      source.missed.add(monotonicMillis(clock))
      return false
    })

  return {
    inTurn: <E, R>(address: string, check: Effect.Effect<boolean, E, R>, credential?: string) =>
      ofClock((clock): Effect.Effect<boolean, E | Crowded, R> => {
        const now = monotonicMillis(clock)
        const name = nameOf(address)
        const source = named(name, now)
        const checking = checked(name, source, check, clock, credential)
        if (source.pause(now) === 0) return checking
        const inLine = Effect.andThen(source.line.turn(clock), checking)
        return credential === undefined || !shared.knowsRight(name)
          ? inLine
          : Effect.flatMap(hasLane(name, source, clock, credential), (has) => has ? checking : inLine)
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
