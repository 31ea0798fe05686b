/**
 * The limits of keys over all nodes of a store. One script admits the requests of keys with limits, by the store's clock. Each
 * node counts the requests of other keys and writes the sums each second, so that a limit that is set later counts them.
 *
 * The one thing to know: both the node and the store hold a request. The node gives a request a ticket before it asks the
 * store, and returns the ticket when the request ends, even if the store's reply was lost, until the store acknowledges it. Once
 * a second both sides are compared.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { randomBytes } from "node:crypto"
import type { StoreShape } from "../cluster/store/Store.ts"
import type { Membership, StoreUnavailable } from "../cluster/store/StoreShape.ts"
import type { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { type KeyLimit, limitFields, windowLetters } from "../config/windowLimit.ts"
import { GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { isKeyId } from "../domain/identity.ts"
import {
  type Admitted,
  admittedAt,
  type Fallback,
  type KeyState,
  notCounted,
  remainingOf,
  type Reserved,
  reserveWithin,
  type Share,
  type StrictShare
} from "./Admission.ts"
import { type BudgetNotices, ownerOfKey } from "./budgetNotices.ts"
import {
  type AdmissionRequest,
  firstStage,
  type KeyUsage,
  maxInFlight,
  nextStage,
  noLimits,
  noShare,
  refusalOf,
  Refused
} from "./keyRules.ts"
import type { RateLimits } from "./rateLimits.ts"
import { readWindows, SeenWindows, type ShareFields, shareFields, windowFields } from "./sharedWindows.ts"
import { windowAt } from "./windows.ts"

/** The part of the store that limits need. */
export interface LimitsStore extends Pick<StoreShape, "run" | "listen" | "isUp" | "clockOffset"> {
  readonly membership: Pick<Membership, "bringsBack">
}

const unavailable = (): GatewayError =>
  gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })

/** Fields of one key in a reply. */
const fieldsPerKey = 2 + windowFields
/** Keys or requests in one call. */
const perCall = 500
/** Milliseconds between two tries to admit a request while nodes return to the store, and the number of tries. */
const quietPause = 250
const quietTries = 40

/** Reads a key's part of a reply. */
const readState = (now: number, fields: ReadonlyArray<string>): KeyState => {
  const [inFlight = "0", lastUsedAt = "", ...counts] = fields
  return {
    inFlight: Number(inFlight),
    lastUsedAt: lastUsedAt === "" ? undefined : Number(lastUsedAt),
    windows: readWindows(now, counts)
  }
}

const minuteOf = (time: number): number => windowAt("minute", time).start

/** A request of a key with limits, from before the store is asked until it is sent as finished. */
interface SharedReservation extends Reserved {
  readonly ticket: string
  readonly key: string
  share: Share
  fallback: Fallback | undefined
  at: number
  rateLimits: RateLimits | undefined
  /** Whether the store has admitted it. */
  held: boolean
}

/** What the store is asked about a reservation. */
interface Question {
  readonly limits: ReadonlyArray<KeyLimit>
  /** The limit of running requests. */
  readonly most: number | undefined
  /** The configuration when the request was asked about first. */
  readonly current: GatewayConfig
  /** `undefined` while the body arrives: the request is checked by the number of running ones alone. */
  readonly request: AdmissionRequest | undefined
  /** The limits that the request is checked by. */
  readonly checked: ReadonlyArray<KeyLimit>
  /** What was reserved while the body arrived. */
  readonly entered: SharedReservation | undefined
}

/** A reservation, as the scripts take it (`windows.lua`). */
interface StoreReservation {
  readonly key: string
  readonly time: number
  readonly share: ShareFields
  /** The letters of the windows that reserve `strict` in place of `share`. */
  readonly letters: string
  readonly strict: ShareFields
}

/** A request, as the scripts take it: its key, when it began, and what it reserves or has used. */
const storeReservation = (key: string, time: number, { strict, ...plain }: Share): StoreReservation => {
  const share = shareFields(plain)
  return strict === undefined
    ? { key, time, share, letters: "", strict: share }
    : { key, time, share, letters: lettersOf(strict), strict: shareFields(strict) }
}

/** One batch; resent unchanged until the store acknowledges it. */
interface Finished {
  readonly batch: string
  readonly requests: ReadonlyArray<
    readonly [ticket: string, counted: 0 | 1, used: ShareFields, ...reserved: [] | [StoreReservation]]
  >
  readonly used: ReadonlyArray<readonly [requests: number, used: StoreReservation]>
}

const lettersOf = ({ windows }: StrictShare): string => windows.map((window) => windowLetters[window]).join("")

/**
 * Makes the limits of a node. `now` is the node's clock in milliseconds of Unix time; `fork` runs effects in the background. `budgets`
 * looks at what keys have used.
 */
export const makeSharedLimits = (
  store: LimitsStore,
  config: ConfigStore["Service"],
  now: () => number,
  fork: (effect: Effect.Effect<void>) => void,
  budgets?: BudgetNotices
) => {
  const prefix = randomBytes(6).toString("base64url")
  const turn = Semaphore.makeUnsafe(1)
  let tickets = 0
  let batches = 0
  /** Requests that are admitted or that the store is asked about, by ticket. */
  const open = new Map<string, SharedReservation>()
  /** Finished requests that are in no batch yet. */
  let finished: Array<Finished["requests"][number]> = []
  /** Finished requests of keys without limits, summed by key and minute. */
  const used = new Map<
    string,
    { readonly key: string; readonly time: number; requests: number; tokens: number; cost: bigint }
  >()
  /** How many such requests are running, by key, and the keys whose number the store does not have. */
  const running = new Map<string, number>()
  const changed = new Set<string>()
  /** The usage of keys with limits as the store last reported it. */
  const seen = new SeenWindows()
  /** The time of data that is older than what this node has seen; set until the store has that. */
  let olderThan: number | undefined
  let sending: Finished | undefined
  let isFlushing = false

  const storeNow = () => now() + store.clockOffset()

  const reservedOf = ({ at, key, share }: SharedReservation) => storeReservation(key, at, share)

  /** Asks the script of keys. */
  const run = (op: "admit" | "look" | "tell" | "sync", asked: unknown) => store.run("keys", op, JSON.stringify(asked))

  const sync = Effect.suspend((): Effect.Effect<unknown, StoreUnavailable> => {
    const held = Array.from(open.values()).filter((one) => one.held).map((one) => [one.ticket, reservedOf(one)])
    const known = [
      ...open.keys(),
      ...finished.map(([ticket]) => ticket),
      ...sending?.requests.map(([ticket]) => ticket) ?? []
    ]
    const asked = { held, known, last: tickets }
    if (olderThan === undefined) return run("sync", asked)
    const from = olderThan
    const lost = seen.since(from)
    const calls = Array.from(
      { length: Math.max(1, Math.ceil(lost.length / perCall)) },
      (_, i) => run("sync", { ...asked, seen: lost.slice(i * perCall, (i + 1) * perCall) })
    )
    return Effect.tap(Effect.all(calls), () =>
      Effect.sync(() => {
        if (olderThan === from) olderThan = undefined
      }))
  })

  store.membership.bringsBack(({ at }) => {
    olderThan = Math.min(at, olderThan ?? at)
    return Effect.map(Effect.suspend(() => olderThan === undefined ? Effect.void : sync), () => {
      for (const key of running.keys()) changed.add(key)
    })
  })

  const nextBatch = (): Finished => {
    const some = finished.slice(0, perCall)
    finished = finished.slice(perCall)
    const sums = Array.from(used).slice(0, perCall)
    for (const [id] of sums) used.delete(id)
    return {
      batch: `${prefix}${++batches}`,
      requests: some,
      used: sums.map(([, { cost, key, requests, time, tokens }]) => [
        requests,
        storeReservation(key, time, { tokens, cost, strict: undefined })
      ])
    }
  }

  /** Whether the counts of a key are compared with limits. */
  const isLimited = (key: string): boolean => (config.now().key_records.get(key)?.limits ?? noLimits).length > 0

  /**
   * Writes what has finished and what is running; `compare` also checks that node and store hold the same requests. While nodes
   * return to the store, all of it waits for the next call, or for as many `tries`.
   */
  const flush = (compare: boolean, tries = 0): Effect.Effect<void> =>
    Effect.gen(function*() {
      for (;;) {
        sending ??= nextBatch()
        const { requests, used: sums } = sending
        const keys = Array.from(changed).slice(0, perCall)
        const held = keys.map((key) => [key, running.get(key) ?? 0])
        const expected = open.size + finished.length
        const limited = Array.from(
          new Set([...requests.flatMap(([, , , reserved]) => reserved?.key ?? []), ...sums.map(([, { key }]) => key)])
        ).filter(isLimited)
        const [verdict, count, time, ...fields] = yield* run("tell", { ...sending, held, limited })
        if (verdict === "quiet") {
          if (tries-- === 0) return
          yield* Effect.sleep(quietPause)
          continue
        }
        sending = undefined
        for (const [i, key] of limited.entries()) {
          const windows = fields.slice(i * windowFields, (i + 1) * windowFields)
          seen.keep(key, Number(time), windows)
          if (budgets?.isWanted === true) {
            budgets.look(ownerOfKey(config.now(), key), readState(Number(time), ["0", "", ...windows]).windows)
          }
        }
        for (const [key, number] of held) if ((running.get(String(key)) ?? 0) === number) changed.delete(String(key))
        // A request that is just being admitted makes the numbers differ too: `sync` compares the requests themselves.
        if (compare && Number(count) !== expected) yield* sync
        // The rest waits for the next beat.
        if (finished.length === 0 && used.size < perCall) return
      }
    }).pipe(turn.withPermit, Effect.ignore)

  /** Flushes in the background; requests that finish meanwhile go with the next flush. */
  const flushSoon = () => {
    if (isFlushing || !store.isUp()) return
    isFlushing = true
    fork(Effect.ensuring(
      flush(false),
      Effect.sync(() => {
        isFlushing = false
      })
    ))
  }

  store.listen(({ _tag }) => {
    if (_tag === "dropped") {
      for (const key of running.keys()) changed.add(key)
      fork(Effect.ignore(sync))
    } else if (
      _tag === "beat" &&
      (open.size > 0 || finished.length > 0 || used.size > 0 || changed.size > 0 || sending !== undefined)
    ) fork(flush(true))
  })

  /** Counts a request of a key without limits. */
  const unlimited = (key: string): Reserved => {
    const at = storeNow()
    running.set(key, (running.get(key) ?? 0) + 1)
    changed.add(key)
    return {
      ticket: undefined,
      ...admittedAt(at),
      commit({ cost = 0n, counted, tokens }) {
        const left = (running.get(key) ?? 1) - 1
        if (left === 0) running.delete(key)
        else running.set(key, left)
        changed.add(key)
        if (!counted) return
        const id = `${key} ${minuteOf(at)}`
        const sum = used.get(id) ?? { key, time: at, requests: 0, tokens: 0, cost: 0n }
        sum.requests++
        sum.tokens += tokens
        sum.cost += cost
        used.set(id, sum)
      }
    }
  }

  /** Opens a request that the store is to be asked about. */
  const opened = (key: string, share: Share): SharedReservation => {
    const ticket = `${prefix}.${++tickets}`
    const reservation: SharedReservation = {
      ticket,
      key,
      share,
      at: storeNow(),
      rateLimits: undefined,
      fallback: undefined,
      get strict() {
        return this.share.strict
      },
      held: false,
      commit({ cost = 0n, counted, tokens }) {
        // A refused request is not open, and has nothing to commit.
        if (!open.delete(ticket)) return
        const reserved = reservation.held ? [reservedOf(reservation)] as const : [] as const
        finished.push([ticket, counted ? 1 : 0, shareFields({ tokens, cost }), ...reserved])
        flushSoon()
      }
    }
    open.set(ticket, reservation)
    return reservation
  }

  /** Asks the store to admit a request, or to count one whose body arrives. */
  const ask = (
    reservation: SharedReservation,
    question: Question,
    tries = quietTries
  ): Effect.Effect<SharedReservation, Refused> => {
    const { key, share, ticket } = reservation
    const { checked, current, entered, limits, most, request } = question
    const { currency } = current
    // The script ends it, and it must not come back by `sync`.
    if (entered !== undefined) entered.held = false
    return Effect.matchEffect(
      run("admit", {
        key,
        ticket,
        most,
        entered: entered?.ticket ?? "",
        reserved: reservedOf(reservation),
        limits: checked.map(limitFields)
      }),
      {
        onFailure: () => Effect.fail(new Refused(unavailable(), undefined)),
        onSuccess: ([verdict, time, ...fields]) => {
          if (verdict === "quiet") {
            return tries === 0
              ? Effect.fail(new Refused(unavailable(), undefined))
              : Effect.andThen(Effect.sleep(quietPause), ask(reservation, question, tries - 1))
          }
          if (entered !== undefined) open.delete(entered.ticket)
          const at = Number(time)
          if (limits.length > 0) seen.keep(key, at, fields.slice(2))
          const state = readState(at, fields)
          const left = limits.length === 0 ? undefined : remainingOf(state, limits, at)
          if (verdict === "ok") {
            reservation.at = at
            reservation.held = true
            reservation.rateLimits = left
            return Effect.succeed(reservation)
          }
          const takesFallback = request?.takesFallback
          const refusal = refusalOf({ state, limits: checked, most, share, now: at, currency, takesFallback }) ??
            unavailable()
          if (request !== undefined) budgets?.refused(ownerOfKey(config.now(), key), state, checked, share)
          const { fallback } = reservation
          const next = request === undefined
            ? refusal
            : nextStage(current, limits, request, { share, checked, fallback }, refusal, { state, most, now: at })
          if (next instanceof GatewayError) {
            open.delete(ticket)
            return Effect.fail(new Refused(next, left))
          }
          reservation.share = next.share
          reservation.fallback = next.fallback
          return ask(reservation, { ...question, checked: next.checked, entered: undefined }, tries)
        }
      }
    )
  }

  /** The limits of a key, and that of its running requests. */
  const rulesOf = (key: string, current: GatewayConfig) => {
    const record = current.key_records.get(key)
    return { limits: record?.limits ?? noLimits, most: maxInFlight(current, record) }
  }

  const admit = (request: AdmissionRequest): Effect.Effect<Admitted, Refused, Scope.Scope> =>
    Effect.withFiber(({ context }) => {
      const { entered, key, used } = request
      if (!isKeyId(key)) return Effect.succeed(admittedAt(storeNow()))
      const scope = Context.getUnsafe(context, Scope.Scope)
      const current = config.now()
      const { limits, most } = rulesOf(key, current)
      if (most === undefined && limits.length === 0) {
        entered?.commit(notCounted)
        return reserveWithin(scope, used, () => Effect.succeed(unlimited(key)))
      }
      const stage = firstStage(current, limits, request, storeNow())
      if (stage instanceof GatewayError) return Effect.fail(new Refused(stage, undefined))
      const { checked, share } = stage
      return Effect.flatMap(
        reserveWithin(scope, used, () => Effect.succeed(opened(key, share))),
        (reservation) =>
          ask(reservation, {
            limits,
            most,
            current,
            request,
            checked,
            entered: entered?.ticket === undefined ? undefined : open.get(entered.ticket)
          })
      )
    })

  const enter = (key: string): Effect.Effect<Reserved, Refused, Scope.Scope> =>
    Effect.withFiber(({ context }) => {
      const scope = Context.getUnsafe(context, Scope.Scope)
      const current = config.now()
      return Effect.flatMap(
        reserveWithin(scope, () => notCounted, () => Effect.succeed(opened(key, noShare))),
        (reservation) =>
          ask(reservation, {
            ...rulesOf(key, current),
            current,
            request: undefined,
            checked: noLimits,
            entered: undefined
          })
      )
    })

  const usageOf = Effect.fnUntraced(function*(
    keys: ReadonlyArray<string>
  ): Effect.fn.Return<ReadonlyArray<KeyUsage>, GatewayError> {
    const current = config.now()
    const found: Array<KeyUsage> = []
    for (let from = 0; from < keys.length; from += perCall) {
      const some = keys.slice(from, from + perCall)
      // The reply counts what has just finished on this node.
      yield* flush(false)
      const [, time, ...fields] = yield* Effect.mapError(run("look", some), unavailable)
      for (const [i, key] of some.entries()) {
        const state = readState(Number(time), fields.slice(i * fieldsPerKey, (i + 1) * fieldsPerKey))
        found.push({ ...state, maxInFlight: maxInFlight(current, current.key_records.get(key)) })
      }
    }
    return found
  })

  return { admit, enter, usageOf, flush: flush(true, quietTries) }
}
