/**
 * The limits of keys over all nodes of a store: what a key with limits may do is asked of one script, by the store's clock;
 * requests of keys without any are counted here and told each second, so that a limit that is set later finds them.
 *
 * The one thing to know: a request is held at both ends. It has its ticket before the store is asked, and whatever becomes of
 * the question, the ticket is given back until the store has heard it; what the two ends hold is compared each second.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { randomBytes } from "node:crypto"
import type { StoreShape } from "../cluster/store/Store.ts"
import type { ConfigStore } from "../config/ConfigStore.ts"
import type { KeyLimit } from "../config/keyRecords.ts"
import { windowNames } from "../config/schema.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { isKeyId } from "../domain/identity.ts"
import {
  type Admitted,
  admittedAt,
  type KeyState,
  remainingOf,
  type Reserved,
  reserveWithin,
  type Used
} from "./Admission.ts"
import {
  type AdmissionRequest,
  countsTokens,
  type KeyUsage,
  maxInFlight,
  noLimits,
  refusalOf,
  Refused
} from "./keyRules.ts"
import type { RateLimits } from "./rateLimits.ts"
import { windowAt } from "./windows.ts"

/** What the limits need of the store. */
export type LimitsStore = Pick<StoreShape, "run" | "listen" | "isUp" | "clockOffset">

const unavailable = (): GatewayError =>
  gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })

/** The windows' letters in the script. */
const letters: { readonly [Window in KeyLimit["window"]]: string } = {
  minute: "m",
  hour: "h",
  day: "d",
  week: "w",
  month: "M"
}

/** Numbers of one key in a reply. */
const perKey = 2 + 2 * windowNames.length
/** Keys that one call asks about, and requests that one tells of. */
const atOnce = 500

/** A key's part of a reply. */
const readState = (now: number, fields: ReadonlyArray<string>): KeyState => {
  const [inFlight = "0", lastUsedAt = "", ...counts] = fields
  return {
    inFlight: Number(inFlight),
    lastUsedAt: lastUsedAt === "" ? undefined : Number(lastUsedAt),
    windows: windowNames.map((window, i) => {
      const { end, start } = windowAt(window, now)
      const [requests, tokens] = [Number(counts[2 * i]), Number(counts[2 * i + 1])]
      return { window, startedAt: start, resetsAt: end, requests, tokens }
    })
  }
}

const minuteOf = (time: number): number => windowAt("minute", time).start

/** A request whose key has limits, from before the store is asked until it has heard of its end. */
class SharedReservation implements Reserved {
  readonly ticket: string
  readonly key: string
  readonly tokens: number
  at: number
  rateLimits: RateLimits | undefined = undefined
  /** Whether the store has said that it is admitted. */
  held = false
  readonly #settled: (reservation: SharedReservation, used: Used) => void
  #isOver = false

  constructor(
    request: { readonly ticket: string; readonly key: string; readonly tokens: number; readonly at: number },
    settled: (reservation: SharedReservation, used: Used) => void
  ) {
    this.ticket = request.ticket
    this.key = request.key
    this.tokens = request.tokens
    this.at = request.at
    this.#settled = settled
  }

  /** There is nothing to give back. */
  drop(): void {
    this.#isOver = true
  }

  settle(used: Used): void {
    if (!this.#isOver) this.#settled(this, used)
  }
}

/** What is told at once; told again in whole until the store has heard it. */
interface Told {
  readonly id: string
  readonly settled: ReadonlyArray<readonly [ticket: string, counted: 0 | 1, tokens: number]>
  readonly used: ReadonlyArray<readonly [key: string, time: number, requests: number, tokens: number]>
}

/** Makes the limits of a node. `now` is the node's clock in milliseconds of Unix time; `fork` runs what nobody waits for. */
export const makeSharedLimits = (
  store: LimitsStore,
  config: ConfigStore["Service"],
  now: () => number,
  fork: (effect: Effect.Effect<void>) => void
) => {
  const prefix = randomBytes(6).toString("base64url")
  const turn = Semaphore.makeUnsafe(1)
  let tickets = 0
  let batches = 0
  /** Asked for, or held. */
  const open = new Map<string, SharedReservation>()
  let settled: Array<Told["settled"][number]> = []
  /** Requests of keys without limits that are over, by key and minute. */
  const used = new Map<string, { readonly key: string; readonly time: number; requests: number; tokens: number }>()
  /** How many such requests run, by key, and the keys of which the store has not heard the number. */
  const running = new Map<string, number>()
  const changed = new Set<string>()
  let telling: Told | undefined
  let isTelling = false

  const storeNow = () => now() + store.clockOffset()

  const sync = Effect.suspend(() => {
    const held = Array.from(open.values()).filter((one) => one.held)
    const has = held.map(({ at, key, ticket, tokens }) => [ticket, key, at, tokens])
    const known = [
      ...open.keys(),
      ...settled.map(([ticket]) => ticket),
      ...telling?.settled.map(([ticket]) => ticket) ?? []
    ]
    return store.run("keys", "sync", JSON.stringify(has), JSON.stringify(known), String(tickets))
  })

  const nextBatch = (): Told => {
    const some = settled.slice(0, atOnce)
    settled = settled.slice(atOnce)
    const sums = Array.from(used).slice(0, atOnce)
    for (const [id] of sums) used.delete(id)
    return {
      id: `${prefix}${++batches}`,
      settled: some,
      used: sums.map(([, { key, requests, time, tokens }]) => [key, time, requests, tokens])
    }
  }

  /** Tells the store what is over and what runs; `compare` whether both ends hold the same, too. */
  const tell = (compare: boolean): Effect.Effect<void> =>
    Effect.gen(function*() {
      for (;;) {
        telling ??= nextBatch()
        const { id, settled: over, used: sums } = telling
        const keys = Array.from(changed).slice(0, atOnce)
        const held = keys.map((key) => [key, running.get(key) ?? 0])
        const expected = open.size + settled.length
        const [, count] = yield* store.run(
          "keys",
          "tell",
          id,
          JSON.stringify(over),
          JSON.stringify(sums),
          JSON.stringify(held)
        )
        telling = undefined
        for (const [key, number] of held) if ((running.get(String(key)) ?? 0) === number) changed.delete(String(key))
        // What is asked for at the moment may be known on one side only: then it is compared anew.
        if (compare && Number(count) !== expected) yield* sync
        // What else there is waits for the next beat.
        if (settled.length === 0 && used.size < atOnce) return
      }
    }).pipe(turn.withPermit, Effect.ignore)

  /** Tells of what has ended, without waiting for it: what ends meanwhile goes with the next one. */
  const tellSoon = () => {
    if (isTelling || !store.isUp()) return
    isTelling = true
    fork(Effect.ensuring(
      tell(false),
      Effect.sync(() => {
        isTelling = false
      })
    ))
  }

  store.listen((kind) => {
    if (kind === "restored" || kind === "dropped") {
      for (const key of running.keys()) changed.add(key)
      fork(Effect.ignore(sync))
    } else if (
      kind === "beat" &&
      (open.size > 0 || settled.length > 0 || used.size > 0 || changed.size > 0 || telling !== undefined)
    ) fork(tell(true))
  })

  const settle = ({ ticket }: SharedReservation, { counted, tokens }: Used) => {
    open.delete(ticket)
    settled.push([ticket, counted ? 1 : 0, tokens])
    tellSoon()
  }

  /** A request that no limit stands against. */
  const unlimited = (key: string): Reserved => {
    const at = storeNow()
    running.set(key, (running.get(key) ?? 0) + 1)
    changed.add(key)
    return {
      ...admittedAt(at),
      settle({ counted, tokens }) {
        const left = (running.get(key) ?? 1) - 1
        if (left === 0) running.delete(key)
        else running.set(key, left)
        changed.add(key)
        if (!counted) return
        const id = `${key} ${minuteOf(at)}`
        const sum = used.get(id) ?? { key, time: at, requests: 0, tokens: 0 }
        sum.requests++
        sum.tokens += tokens
        used.set(id, sum)
      }
    }
  }

  /** A request that the store is asked about. */
  const opened = (key: string, tokens: number): SharedReservation => {
    const reservation = new SharedReservation({ ticket: `${prefix}.${++tickets}`, key, tokens, at: storeNow() }, settle)
    open.set(reservation.ticket, reservation)
    return reservation
  }

  /** What the store says of it. */
  const ask = (
    reservation: SharedReservation,
    limits: ReadonlyArray<KeyLimit>,
    most: number | undefined
  ): Effect.Effect<Admitted, Refused> => {
    const { key, ticket, tokens } = reservation
    const asked = limits.flatMap((limit) => [
      letters[limit.window],
      String(limit.requests ?? ""),
      String(limit.tokens ?? "")
    ])
    return Effect.matchEffect(
      store.run("keys", "admit", key, ticket, String(most ?? ""), String(tokens), ...asked),
      {
        onFailure: () => Effect.fail(new Refused(unavailable(), undefined)),
        onSuccess: ([verdict, time, ...fields]) => {
          const at = Number(time)
          const state = readState(at, fields)
          const left = limits.length === 0 ? undefined : remainingOf(state, limits, at)
          if (verdict === "ok") {
            reservation.at = at
            reservation.held = true
            reservation.rateLimits = left
            return Effect.succeed(reservation)
          }
          open.delete(ticket)
          reservation.drop()
          return Effect.fail(
            new Refused(refusalOf({ state, limits, most, tokens, now: at }) ?? unavailable(), left)
          )
        }
      }
    )
  }

  const admit = ({ key, promptTokens, used }: AdmissionRequest): Effect.Effect<Admitted, Refused, Scope.Scope> =>
    Effect.withFiber(({ context }) => {
      if (!isKeyId(key)) return Effect.succeed(admittedAt(storeNow()))
      const scope = Context.getUnsafe(context, Scope.Scope)
      const current = config.unsafeCurrent()
      const record = current.key_records.get(key)
      const limits = record?.limits ?? noLimits
      const most = maxInFlight(current, record)
      if (most === undefined && limits.length === 0) {
        return reserveWithin(scope, used, () => Effect.succeed(unlimited(key)))
      }
      const tokens = countsTokens(limits) ? promptTokens() : 0
      return Effect.flatMap(
        reserveWithin(scope, used, () => Effect.succeed(opened(key, tokens))),
        (reservation) => ask(reservation, limits, most)
      )
    })

  const usageOf = Effect.fnUntraced(function*(
    keys: ReadonlyArray<string>
  ): Effect.fn.Return<ReadonlyArray<KeyUsage>, GatewayError> {
    const current = config.unsafeCurrent()
    const found: Array<KeyUsage> = []
    for (let from = 0; from < keys.length; from += atOnce) {
      const some = keys.slice(from, from + atOnce)
      // What has just ended here is in it.
      yield* tell(false)
      const [, time, ...fields] = yield* Effect.mapError(store.run("keys", "look", JSON.stringify(some)), unavailable)
      for (const [i, key] of some.entries()) {
        const state = readState(Number(time), fields.slice(i * perKey, (i + 1) * perKey))
        found.push({ ...state, maxInFlight: maxInFlight(current, current.key_records.get(key)) })
      }
    }
    return found
  })

  return { admit, usageOf, tell: tell(true) }
}
