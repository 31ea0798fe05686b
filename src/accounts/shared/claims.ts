/**
 * This node's claims in the shared pool: what it has asked the store for, what waits there, what it holds, and what it has
 * still to give back.
 *
 * The one thing to know: a claim is under way at both ends. An answer may be lost or come twice, in any order with what the
 * channel tells; so a claim that ends here is given back by its ticket until the store has heard it, and a grant for a ticket
 * that nobody waits with any more is given back too.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberHandle from "effect/FiberHandle"
import * as FiberSet from "effect/FiberSet"
import { randomBytes } from "node:crypto"
import type { Store } from "../../cluster/store/Store.ts"
import { StoreUnavailable } from "../../cluster/store/StoreError.ts"
import { CurrentShutdown } from "../../config/clock/Shutdown.ts"
import type { Refusal } from "../PoolState.ts"

/** A slot that the store has given. */
export interface Grant {
  readonly ticket: string
  /** The account by its name in the store; empty for a share of the global limit alone. */
  readonly account: string
  /** Rises with every grant over all nodes. */
  readonly fence: number
  /** The account's epoch: which of its faults came before. */
  readonly epoch: string
  /** The version of the account's token. */
  readonly token: string
  /** Whether its sessions are being deleted. */
  readonly cleaning: boolean
  /** The revision of the configuration that it was given under. */
  readonly revision: number
}

/** Why there is no grant. */
export type NoGrant = Refusal | StoreUnavailable

/** What a claim is for; wishes as the scripts have them (`pool.lua`). */
export interface Claim {
  readonly wish: string
  /** What to wish where that is refused at once; empty where there is nothing else. */
  readonly instead: string
  /** Milliseconds that it may wait. */
  readonly patience: number
  readonly style: string
}

interface Waiter {
  readonly claim: Claim
  readonly settled: Deferred.Deferred<Grant, NoGrant>
  /** Its place in the one queue; 0 until the store has said it. */
  number: number
  readonly since: number
}

/** Told what the store has replied. */
type Heard = (reply: ReadonlyArray<string>) => void

/** Lets an effect be interrupted within a part that is not. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Waiters keep their places for so long while the store is lost, in milliseconds. */
const lostPatience = 5_000

export const storeLost = new StoreUnavailable({ message: "The gateway's shared store does not answer" })

const closing: Refusal = { _tag: "Closing" }

const refusalOf = (reason: string | undefined, left: string | undefined, now: number): Refusal => {
  switch (reason) {
    case "Full":
    case "Unavailable":
    case "Unknown":
    case "Late":
      return { _tag: reason }
    case "Cooling":
      return { _tag: "Cooling", until: now + Number(left) }
    default:
      return { _tag: "Unavailable" }
  }
}

const grantOf = (ticket: string, fields: ReadonlyArray<string | undefined>): Grant => {
  const [account = "", fence, epoch = "0", token = "0", cleaning, revision] = fields
  return { ticket, account, fence: Number(fence), epoch, token, cleaning: cleaning === "1", revision: Number(revision) }
}

/** Makes the claims of a node. `now` is a monotonic clock in milliseconds. */
export const makeClaims = Effect.fnUntraced(function*(store: Store["Service"], now: () => number) {
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const setLostTimer = yield* Effect.flatMap(FiberHandle.make<void>(), (timer) => FiberHandle.runtime(timer)<never>())
  const prefix = randomBytes(3).toString("base64url")
  let tickets = 0
  const waiters = new Map<string, Waiter>()
  const leases = new Map<string, Grant>()
  /** What the store has still to hear; `sent` while it is under way. */
  const leaving = new Map<string, { readonly args: ReadonlyArray<string>; readonly heard: Heard; sent: boolean }>()

  const noReport = ["", "", "", "", "", "", "", "", ""]

  const tellLeaving = (ticket: string) => {
    const entry = leaving.get(ticket)
    if (entry === undefined || entry.sent || !store.isUp()) return
    entry.sent = true
    fork(
      Effect.matchEffect(store.run("release", ticket, ...entry.args), {
        onFailure: () =>
          Effect.sync(() => {
            entry.sent = false
          }),
        onSuccess: (reply) =>
          Effect.sync(() => {
            leaving.delete(ticket)
            entry.heard(reply)
          })
      })
    )
  }

  /** Ends a claim at the store, now or as soon as it is there. */
  const end = (ticket: string, args: ReadonlyArray<string>, heard: Heard) => {
    leaving.set(ticket, { args, heard, sent: false })
    tellLeaving(ticket)
  }

  const giveUp = (ticket: string) => end(ticket, noReport, () => undefined)

  const granted = (grant: Grant) => {
    const waiter = waiters.get(grant.ticket)
    if (waiter === undefined) {
      // It was given up meanwhile, which the store may not have heard yet.
      if (!leases.has(grant.ticket) && !leaving.has(grant.ticket)) giveUp(grant.ticket)
      return
    }
    waiters.delete(grant.ticket)
    leases.set(grant.ticket, grant)
    Deferred.doneUnsafe(waiter.settled, Exit.succeed(grant))
  }

  const refused = (ticket: string, reason: NoGrant) => {
    const waiter = waiters.get(ticket)
    if (waiter === undefined) return
    waiters.delete(ticket)
    Deferred.doneUnsafe(waiter.settled, Exit.fail(reason))
  }

  const refuseAll = (reason: NoGrant) => {
    for (const ticket of waiters.keys()) {
      refused(ticket, reason)
      giveUp(ticket)
    }
  }

  const giveUpWaiting = Effect.andThen(
    Effect.sleep(lostPatience),
    Effect.sync(() => {
      if (!store.isUp()) refuseAll(storeLost)
    })
  )

  const shutdown = yield* CurrentShutdown
  const unwatch = shutdown.watch(() => refuseAll(closing))
  yield* Effect.addFinalizer(() => Effect.sync(unwatch))

  store.listen((kind, rest) => {
    const [ticket = "", ...fields] = rest.split(" ")
    if (kind === "grant") granted(grantOf(ticket, fields))
    else if (kind === "refuse") refused(ticket, refusalOf(fields[0], fields[1], now()))
    else if (kind === "lost") setLostTimer(giveUpWaiting)
    else if (kind === "up" || kind === "beat") {
      for (const left of leaving.keys()) tellLeaving(left)
    }
  })
  store.holds(
    () => ({
      leases: Array.from(leases.values(), ({ account, fence, ticket }) => [ticket, account, fence] as const),
      tickets: Array.from(waiters, ([ticket, { claim, number, since }]) => {
        const waited = now() - since
        return [
          ticket,
          claim.wish,
          number,
          Math.max(0, Math.round(claim.patience - waited)),
          Math.round(waited),
          claim.style
        ]
      })
    }),
    () => {
      let unsettled = leaving.size
      for (const { number } of waiters.values()) if (number === 0) unsettled++
      return { leases: leases.size, tickets: waiters.size, unsettled }
    }
  )

  /** The time in the queue is over: the store says why, or that the grant came first. */
  const late = (ticket: string): Effect.Effect<Grant, NoGrant> =>
    Effect.flatMap(store.run("late", ticket), ([outcome, ...fields]): Effect.Effect<Grant, NoGrant> => {
      const waiter = waiters.get(ticket)
      if (outcome === "granted") granted(grantOf(ticket, fields))
      else refused(ticket, refusalOf(fields[0], fields[1], now()))
      return waiter === undefined ? Effect.fail({ _tag: "Late" }) : Deferred.await(waiter.settled)
    })

  return {
    /**
     * Asks for a slot and waits for it; only the wait, which `restore` makes so, may be interrupted. Whatever ends it, nothing
     * stays behind; a grant is to be ended by `end`.
     */
    claim: (claim: Claim, restore: Restore): Effect.Effect<Grant, NoGrant> =>
      Effect.suspend(() => {
        if (!store.isUp()) return Effect.fail(storeLost)
        const ticket = `${prefix}${(++tickets).toString(36)}`
        const settled = Deferred.makeUnsafe<Grant, NoGrant>()
        const waiter: Waiter = { claim, settled, number: 0, since: now() }
        // The channel may tell of the grant before the answer is here.
        waiters.set(ticket, waiter)
        const ask = store.run(
          "acquire",
          ticket,
          claim.wish,
          String(Math.round(claim.patience)),
          claim.instead,
          claim.style
        )
        const wait = Effect.flatMap(ask, ([outcome, ...fields]): Effect.Effect<Grant, NoGrant> => {
          if (outcome === "granted") granted(grantOf(ticket, fields))
          else if (outcome === "refused") refused(ticket, refusalOf(fields[0], fields[1], now()))
          else waiter.number = Number(fields[0])
          if (Deferred.isDoneUnsafe(settled)) return Deferred.await(settled)
          if (shutdown.isOver) return Effect.fail(closing)
          return restore(
            Effect.timeoutOrElse(Deferred.await(settled), { duration: claim.patience, orElse: () => late(ticket) })
          )
        })
        return Effect.onExit(wait, (exit) =>
          Effect.sync(() => {
            if (Exit.isSuccess(exit)) return
            const waits = waiters.delete(ticket)
            if (leases.delete(ticket) || waits) giveUp(ticket)
          }))
      }),
    /** Gives a slot back, with what is to be reported (`release.lua`); `heard` hears the store's reply. */
    end: (grant: Grant, args: ReadonlyArray<string>, heard: Heard): void => {
      if (leases.delete(grant.ticket)) end(grant.ticket, args, heard)
    },
    inUse: () => leases.size,
    waiting: () => waiters.size
  }
})

export type Claims = Effect.Success<ReturnType<typeof makeClaims>>
