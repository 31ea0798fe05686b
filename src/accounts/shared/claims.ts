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
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { randomBytes } from "node:crypto"
import { type MessageOf, messageOf, type StoreEvent } from "../../cluster/store/messages.ts"
import type { Store } from "../../cluster/store/Store.ts"
import { type Holdings, type StoreClaim, StoreUnavailable } from "../../cluster/store/StoreShape.ts"
import { CurrentShutdown } from "../../config/clock/Shutdown.ts"
import type { Refusal } from "../../placement/PoolState.ts"
import type { Stickiness } from "../Lease.ts"
import { type LeaseEnd, nothingSeen } from "./poolScripts.ts"

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
  /** The pool of the slot. */
  readonly pool: string
  /** The coolings of the pool's upstream before the grant. */
  readonly coolings: string
  /** Whether the lease probes the upstream, which others skip meanwhile. */
  readonly probes: boolean
  /** The windows of the account's quota (`Quotas.received`); empty without any. */
  readonly quota: string
  /** The number of the model that it serves, among those of the request at the pool; 0 without any. */
  readonly model: number
  /** What the turn before has left, encrypted; empty without. */
  readonly memory: string
}

/** Why there is no grant. */
export type NoGrant = Refusal | StoreUnavailable

/** What a claim asks for. */
export interface Claim extends Omit<StoreClaim, "holds"> {
  /** Milliseconds that the claim waits at its first target alone while that one is full. */
  readonly hold: number
  /** Whether a pool still serves the claim, by the configuration in effect. */
  readonly isServed: (pool: string) => boolean
}

interface Waiter {
  readonly claim: Claim
  /** Whether it waits at its first target alone. */
  holding: boolean
  readonly outcome: Deferred.Deferred<Grant, NoGrant>
  /** Its place in the queue of all nodes; 0 until the store has replied. */
  number: number
  /** What the turn before has left, encrypted. */
  memory: string
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

const refusalOf = ({ left, reason }: MessageOf<"refuse">, now: number): Refusal => {
  switch (reason) {
    case "Full":
    case "Unavailable":
    case "Unknown":
    case "Late":
      return { _tag: reason }
    case "Cooling":
      return { _tag: "Cooling", until: now + left }
    default:
      return { _tag: "Unavailable" }
  }
}

const grantOf = ({ _tag, cleaning, memory = "", probes, ...same }: MessageOf<"grant">): Grant => ({
  ...same,
  cleaning: cleaning === "1",
  probes: probes === "1",
  memory
})

/** A claim as the scripts take it. */
const storeClaim = (
  { hold: _hold, isServed: _isServed, ...same }: Claim,
  patience: number,
  holds: boolean
): StoreClaim => ({
  ...same,
  patience: Math.round(patience),
  holds
})

/**
 * Makes the claims of a node. `now` is a monotonic clock in milliseconds. `takeLearned` returns accounts, by their names in the store, with the
 * windows of their quotas that the store has not received; later calls leave them out.
 */
export const makeClaims = Effect.fnUntraced(function*(
  store: Store["Service"],
  now: () => number,
  takeLearned: () => ReadonlyArray<readonly [account: string, windows: string]>
) {
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const setLostTimer = yield* Effect.flatMap(FiberHandle.make<void>(), (timer) => FiberHandle.runtime(timer)<never>())
  const prefix = randomBytes(3).toString("base64url")
  let tickets = 0
  const waiters = new Map<string, Waiter>()
  const leases = new Map<string, Grant>()
  /** Releases that the store has not acknowledged, by ticket; `sent` while one is under way. */
  const releases = new Map<string, { readonly ended: LeaseEnd; readonly onReply: OnReply; sent: boolean }>()

  const sendRelease = (ticket: string) => {
    const entry = releases.get(ticket)
    if (entry === undefined || entry.sent || !store.isUp()) return
    entry.sent = true
    fork(
      Effect.matchEffect(store.run("release", ticket, JSON.stringify(entry.ended)), {
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

  /** Ends a claim in the store, immediately or as soon as the store is up. */
  const end = (ticket: string, ended: LeaseEnd, onReply: OnReply) => {
    releases.set(ticket, { ended, onReply, sent: false })
    sendRelease(ticket)
  }

  const giveUp = (ticket: string) => end(ticket, nothingSeen, () => undefined)

  const granted = (grant: Grant) => {
    const waiter = waiters.get(grant.ticket)
    if (waiter === undefined) {
      // The node has given the claim up; the store may not have received that yet.
      if (!leases.has(grant.ticket) && !releases.has(grant.ticket)) giveUp(grant.ticket)
      return
    }
    waiters.delete(grant.ticket)
    leases.set(grant.ticket, grant)
    // A message has no memory: the reply of the script had it.
    Deferred.doneUnsafe(
      waiter.outcome,
      Exit.succeed(grant.memory === "" && waiter.memory !== "" ? { ...grant, memory: waiter.memory } : grant)
    )
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

  const received = (event: StoreEvent) => {
    switch (event._tag) {
      case "grant":
        return granted(grantOf(event))
      case "refuse":
        return refused(event.ticket, refusalOf(event, now()))
      case "lost":
        return setLostTimer(giveUpWaiting)
      case "up":
      case "beat":
        for (const ticket of releases.keys()) sendRelease(ticket)
    }
  }
  store.listen(received)
  store.membership.holds(
    () => ({
      leases: Array.from(
        leases.values(),
        ({ account, fence, pool, ticket }): Holdings["leases"][number] => [ticket, account, fence, pool]
      ),
      tickets: Array.from(waiters, ([ticket, { claim, holding, number, since }]): Holdings["tickets"][number] => {
        const waited = now() - since
        const left = Math.max(0, claim.patience - waited)
        return [ticket, number, Math.round(waited), storeClaim(claim, left, holding)]
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
    Effect.flatMap(store.run("late", ticket), (reply): Effect.Effect<Grant, NoGrant> => {
      const waiter = waiters.get(ticket)
      replied(ticket, reply)
      return waiter === undefined ? Effect.fail({ _tag: "Late" }) : Deferred.await(waiter.outcome)
    })

  /** Receives the reply of a script to a claim. */
  const replied = (ticket: string, [verdict, ...fields]: ReadonlyArray<string>) => {
    const waiter = waiters.get(ticket)
    if (verdict === "waiting" && waiter !== undefined) {
      waiter.number = Number(fields[0])
      waiter.holding = fields[1] === "1"
      waiter.memory = fields[2] ?? ""
    } else if (verdict === "granted" || verdict === "refused") {
      Option.map(messageOf(verdict === "granted" ? "grant" : "refuse", [ticket, ...fields]), received)
    }
  }

  /** Changes the places of a waiter until the store has received that. */
  const change = (ticket: string, ...args: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.suspend(() =>
      waiters.has(ticket)
        ? Effect.map(store.run("places", args[0]!, ticket, ...args.slice(1)), (reply) => replied(ticket, reply))
        : Effect.void
    ).pipe(Effect.retry(Schedule.spaced("1 second")), Effect.ignore)

  /** Gives up the places of a waiter in pools that no longer serve it. */
  const review = (ticket: string, { isServed, targets }: Claim) => {
    for (const { pool } of targets) if (!isServed(pool)) fork(change(ticket, "drop", pool))
  }

  /** Waits for the outcome of a waiter. The hold at its first target ends while it goes on waiting. */
  const arrival = (ticket: string, { claim, holding, outcome }: Waiter): Effect.Effect<Grant, NoGrant> => {
    const awaited = Deferred.await(outcome)
    if (!holding) return awaited
    const widened = Effect.andThen(Effect.sleep(claim.hold), change(ticket, "widen"))
    return Effect.raceFirst(awaited, Effect.andThen(widened, Effect.never))
  }

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
        const waiter: Waiter = { claim, holding: false, outcome, number: 0, memory: "", since: now() }
        // The channel may deliver the grant before the reply is here.
        waiters.set(ticket, waiter)
        const asked = storeClaim(claim, claim.patience, claim.hold > 0)
        const acquire = store.run("acquire", ticket, JSON.stringify(asked), JSON.stringify(takeLearned()))
        const wait = Effect.flatMap(acquire, (reply): Effect.Effect<Grant, NoGrant> => {
          replied(ticket, reply)
          if (Deferred.isDoneUnsafe(outcome)) return Deferred.await(outcome)
          if (shutdown.isOver) return Effect.fail(closing)
          // The configuration may have changed meanwhile.
          review(ticket, claim)
          if (claim.patience <= 0) return late(ticket)
          return restore(
            Effect.timeoutOrElse(arrival(ticket, waiter), { duration: claim.patience, orElse: () => late(ticket) })
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
    end: (grant: Grant, ended: LeaseEnd, onReply: OnReply): void => {
      if (leases.delete(grant.ticket)) end(grant.ticket, ended, onReply)
    },
    /** Reports that the upstream of a lease has sent the first event. Returns whether that ends a cooling. */
    works: (grant: Grant): Effect.Effect<boolean> =>
      Effect.match(store.run("places", "works", grant.ticket), {
        onFailure: () => false,
        onSuccess: ([verdict]) => verdict === "back"
      }),
    /** Notes that the account of a lease answers a conversation. Returns whether the conversation has met its account again, if it had one. */
    answered: (
      grant: Grant,
      { isContinued, keys, lifetimeOf }: Stickiness
    ): Effect.Effect<"hit" | "move" | undefined> => {
      const lifetime = lifetimeOf(grant.pool)
      return lifetime === 0
        ? Effect.undefined
        : Effect.match(
          store.run("places", "answered", grant.ticket, isContinued ? "1" : "0", String(lifetime), keys.join(" ")),
          {
            onFailure: () => undefined,
            onSuccess: ([met]) => met === "hit" || met === "move" ? met : undefined
          }
        )
    },
    /** Gives up the places of waiters in pools that no longer serve them. Called when the configuration has changed. */
    review: (): void => {
      for (const [ticket, { claim }] of waiters) review(ticket, claim)
    },
    inUse: () => leases.size,
    waiting: () => waiters.size
  }
})

export type Claims = Effect.Success<ReturnType<typeof makeClaims>>
