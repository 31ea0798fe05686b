/**
 * Turns of addresses: one that has had too many wrong credentials has them checked at a pace, in order, so that guessing
 * is slow and a right key still gets in. Times are monotonic.
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
export const mostWaiting = 16
/** Addresses that are known; those that were wrong longest ago are forgotten first. */
export const mostSources = 10_000

const minute = 60_000
/** Milliseconds between two checks of a slowed address, and of one that is slowed more. */
const pause = 250
const longPause = 1000

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

class Source {
  readonly short = new Count(minute)
  readonly long = new Count(10 * minute)
  readonly line = Semaphore.makeUnsafe(1)
  /** Credentials that are being checked: they may all be wrong. */
  checking = 0
  waiting = 0
  lastTurn = Number.NEGATIVE_INFINITY

  /** Milliseconds between two turns; 0 where there is no need for turns. */
  pause(now: number): number {
    if (this.long.at(now) + this.checking >= wrongInTenMinutes) return longPause
    return this.short.at(now) + this.checking >= wrongAMinute ? pause : 0
  }

  isIdle(now: number): boolean {
    return this.checking === 0 && this.waiting === 0 && this.long.at(now) === 0
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
   * with `Crowded`, unchecked, where too many wait.
   */
  readonly inTurn: <E, R>(
    address: string,
    check: Effect.Effect<boolean, E, R>
  ) => Effect.Effect<boolean, E | Crowded, R>
  /** Milliseconds until an address is no longer slowed; 0 where it is not. */
  readonly slowedFor: (address: string) => Effect.Effect<number>
}

/** How turns go by what other nodes know. */
export interface SharedTurns {
  readonly nameOf: (address: string) => string
  readonly wrong: (name: string) => void
  readonly onWrong: (listener: (name: string) => void) => void
}

const alone: SharedTurns = { nameOf: (address) => address, wrong: () => undefined, onWrong: () => undefined }

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

  const find = (address: string, now: number): Source => named(nameOf(address), now)

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

  const checked = <E, R>(address: string, source: Source, check: Effect.Effect<boolean, E, R>, clock: Clock.Clock) =>
    Effect.suspend(() => {
      source.checking++
      return Effect.ensuring(check, Effect.sync(() => source.checking--))
    }).pipe(
      Effect.tap((right) =>
        Effect.sync(() => {
          const name = nameOf(address)
          const now = monotonicMillis(clock)
          if (!right) {
            count(name, source, now)
            shared.wrong(name)
          } else if (source.isIdle(now) && sources.get(name) === source) {
            sources.delete(name)
          }
        })
      )
    )

  /** Waits until the source's next turn, and takes it. */
  const turn = (source: Source, clock: Clock.Clock) =>
    Effect.suspend(() => {
      const now = monotonicMillis(clock)
      const due = source.lastTurn + source.pause(now) - now
      return due > 0 ? Effect.sleep(due) : Effect.void
    }).pipe(
      Effect.andThen(Effect.sync(() => {
        source.lastTurn = monotonicMillis(clock)
      })),
      source.line.withPermit
    )

  return {
    inTurn: <E, R>(address: string, check: Effect.Effect<boolean, E, R>) =>
      ofClock((clock): Effect.Effect<boolean, E | Crowded, R> => {
        const now = monotonicMillis(clock)
        const source = find(address, now)
        const between = source.pause(now)
        if (between === 0) return checked(address, source, check, clock)
        if (source.waiting >= mostWaiting) {
          return Effect.fail(new Crowded({ retryAfter: Math.max(1, Math.ceil(source.waiting * between / 1000)) }))
        }
        source.waiting++
        return Effect.ensuring(turn(source, clock), Effect.sync(() => source.waiting--)).pipe(
          Effect.andThen(checked(address, source, check, clock))
        )
      }),
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
