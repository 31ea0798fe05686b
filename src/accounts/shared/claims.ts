/**
 * This node's claims in the shared pool: requests that the store is asked for, requests that wait there, granted slots, and
 * slots that are still to be given back.
 *
 * The one thing to know: node and store may disagree about a claim for a moment. A reply may be lost, or come twice, or come
 * after the channel's message. So the node gives a claim back by its ticket until the store acknowledges that, and also gives
 * back every grant whose request no longer waits.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberHandle from "effect/FiberHandle"
import * as FiberSet from "effect/FiberSet"
import { randomBytes } from "node:crypto"
import type { Store } from "../../cluster/store/Store.ts"
import { StoreUnavailable } from "../../cluster/store/StoreShape.ts"
import { CurrentShutdown } from "../../config/clock/Shutdown.ts"
import type { Refusal } from "../PoolState.ts"
import { noVerdict } from "./poolScripts.ts"

/** A slot that the store has granted. */
export interface Grant {
  readonly ticket: string
  /** The account's name in the store; empty for a share of the global limit alone. */
  readonly account: string
  /** Rises with every grant on any node. */
  readonly fence: number
  /** The account's epoch, which rises with each of its faults. */
  readonly epoch: string
  /** The version of the account's token. */
  readonly token: string
  /** Whether the account's sessions are being deleted. */
  readonly cleaning: boolean
  /** The revision of the configuration in effect at the grant. */
  readonly revision: number
}

/** Why there is no grant. */
export type NoGrant = Refusal | StoreUnavailable

/** What a claim asks for; requests as the scripts take them (`pool.lua`). */
export interface Claim {
  readonly request: string
  /** The request to make if the first one is refused at once; empty for no other. */
  readonly fallback: string
  /** Milliseconds that the claim may wait. */
  readonly patience: number
  readonly style: string
}

interface Waiter {
  readonly claim: Claim
  readonly outcome: Deferred.Deferred<Grant, NoGrant>
  /** Its place in the queue of all nodes; 0 until the store has replied. */
  number: number
  readonly since: number
}

/** Receives the store's reply. */
type OnReply = (reply: ReadonlyArray<string>) => void

/** Makes an effect interruptible within an uninterruptible part. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Waiters keep their places this long while the store is lost, in milliseconds. */
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
  /** Releases that the store has not acknowledged, by ticket; `sent` while one is under way. */
  const releases = new Map<string, { readonly args: ReadonlyArray<string>; readonly onReply: OnReply; sent: boolean }>()

  const sendRelease = (ticket: string) => {
    const entry = releases.get(ticket)
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
            releases.delete(ticket)
            entry.onReply(reply)
          })
      })
    )
  }

  /** Ends a claim in the store, at once or as soon as the store is up. */
  const end = (ticket: string, args: ReadonlyArray<string>, onReply: OnReply) => {
    releases.set(ticket, { args, onReply, sent: false })
    sendRelease(ticket)
  }

  const giveUp = (ticket: string) => end(ticket, ["", ...noVerdict], () => undefined)

  const granted = (grant: Grant) => {
    const waiter = waiters.get(grant.ticket)
    if (waiter === undefined) {
      // The node has given the claim up; the store may not have received that yet.
      if (!leases.has(grant.ticket) && !releases.has(grant.ticket)) giveUp(grant.ticket)
      return
    }
    waiters.delete(grant.ticket)
    leases.set(grant.ticket, grant)
    Deferred.doneUnsafe(waiter.outcome, Exit.succeed(grant))
  }

  const refused = (ticket: string, reason: NoGrant) => {
    const waiter = waiters.get(ticket)
    if (waiter === undefined) return
    waiters.delete(ticket)
    Deferred.doneUnsafe(waiter.outcome, Exit.fail(reason))
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
      for (const ticket of releases.keys()) sendRelease(ticket)
    }
  })
  store.holds(
    () => ({
      leases: Array.from(leases.values(), ({ account, fence, ticket }) => [ticket, account, fence] as const),
      tickets: Array.from(waiters, ([ticket, { claim, number, since }]) => {
        const waited = now() - since
        return [
          ticket,
          claim.request,
          number,
          Math.max(0, Math.round(claim.patience - waited)),
          Math.round(waited),
          claim.style
        ]
      })
    }),
    () => {
      let unsettled = releases.size
      for (const { number } of waiters.values()) if (number === 0) unsettled++
      return { leases: leases.size, tickets: waiters.size, unsettled }
    }
  )

  /** Ends a wait that took too long: the store replies with the reason, or with a grant that came first. */
  const late = (ticket: string): Effect.Effect<Grant, NoGrant> =>
    Effect.flatMap(store.run("late", ticket), ([verdict, ...fields]): Effect.Effect<Grant, NoGrant> => {
      const waiter = waiters.get(ticket)
      if (verdict === "granted") granted(grantOf(ticket, fields))
      else refused(ticket, refusalOf(fields[0], fields[1], now()))
      return waiter === undefined ? Effect.fail({ _tag: "Late" }) : Deferred.await(waiter.outcome)
    })

  return {
    /**
     * Asks for a slot and waits for it. Only the wait, which `restore` runs, can be interrupted. A claim that fails leaves
     * nothing behind; a grant must be ended by `end`.
     */
    claim: (claim: Claim, restore: Restore): Effect.Effect<Grant, NoGrant> =>
      Effect.suspend(() => {
        if (!store.isUp()) return Effect.fail(storeLost)
        const ticket = `${prefix}${(++tickets).toString(36)}`
        const outcome = Deferred.makeUnsafe<Grant, NoGrant>()
        const waiter: Waiter = { claim, outcome, number: 0, since: now() }
        // The channel may deliver the grant before the reply is here.
        waiters.set(ticket, waiter)
        const acquire = store.run(
          "acquire",
          ticket,
          claim.request,
          String(Math.round(claim.patience)),
          claim.fallback,
          claim.style
        )
        const wait = Effect.flatMap(acquire, ([verdict, ...fields]): Effect.Effect<Grant, NoGrant> => {
          if (verdict === "granted") granted(grantOf(ticket, fields))
          else if (verdict === "refused") refused(ticket, refusalOf(fields[0], fields[1], now()))
          else waiter.number = Number(fields[0])
          if (Deferred.isDoneUnsafe(outcome)) return Deferred.await(outcome)
          if (shutdown.isOver) return Effect.fail(closing)
          return restore(
            Effect.timeoutOrElse(Deferred.await(outcome), { duration: claim.patience, orElse: () => late(ticket) })
          )
        })
        return Effect.onExit(wait, (exit) =>
          Effect.sync(() => {
            if (Exit.isSuccess(exit)) return
            const wasWaiting = waiters.delete(ticket)
            if (leases.delete(ticket) || wasWaiting) giveUp(ticket)
          }))
      }),
    /** Gives a slot back, with a report (`release.lua`). `onReply` receives the store's reply. */
    end: (grant: Grant, args: ReadonlyArray<string>, onReply: OnReply): void => {
      if (leases.delete(grant.ticket)) end(grant.ticket, args, onReply)
    },
    inUse: () => leases.size,
    waiting: () => waiters.size
  }
})

export type Claims = Effect.Success<ReturnType<typeof makeClaims>>
