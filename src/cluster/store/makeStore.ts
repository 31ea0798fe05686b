/**
 * Makes the store of this node from its parts: the attachment to the store's data, the subscription to messages, and the heartbeat.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { randomBytes } from "node:crypto"
import { parseStoreAddress, type StoreAddress, storeAddressFault } from "./address.ts"
import { Attachment } from "./Attachment.ts"
import { type About, Availability, unavailable } from "./Availability.ts"
import { BroughtBack } from "./BroughtBack.ts"
import { makeClient } from "./client.ts"
import { silent } from "./connection.ts"
import { makeEncryption } from "./encryption.ts"
import { Heartbeat } from "./Heartbeat.ts"
import { StoreListeners } from "./messages.ts"
import { NodeFacts } from "./NodeFacts.ts"
import { checkServer, EvictionWatch } from "./server.ts"
import { agreeOn, NameSecret } from "./sharedSecrets.ts"
import { StoreClock } from "./StoreClock.ts"
import {
  leastKeyLength,
  nodeName,
  retryWhileUnavailable,
  StoreInvalid,
  type StoreOptions,
  type StoreShape
} from "./StoreShape.ts"
import { Subscription } from "./Subscription.ts"

/**
 * Limits of the command timeout in milliseconds. Three consecutive failures mean that the store is lost, which this node
 * must detect before the store drops it after 5 s.
 */
const timeouts = { least: 50, standard: 250, most: 1_500 }

const idForm = /^[A-Za-z0-9._-]{1,64}$/

/** Checks the options. */
const readOptions = Effect.fnUntraced(function*(options: StoreOptions) {
  const url = Redacted.value(options.url).trim()
  const address = parseStoreAddress(url)
  if (address === undefined) {
    return yield* new StoreInvalid({ message: `GATEWAY_STORE_URL ${storeAddressFault(url)}` })
  }
  if (Redacted.value(options.key).length < leastKeyLength) {
    return yield* new StoreInvalid({ message: `GATEWAY_STORE_KEY must have at least ${leastKeyLength} characters` })
  }
  const node = options.nodeId ?? nodeName()
  if (!idForm.test(node)) {
    return yield* new StoreInvalid({ message: "GATEWAY_NODE_ID must be 1 to 64 of A-Z, a-z, 0-9, dot, _ and -" })
  }
  const timeout = options.timeoutMillis ?? timeouts.standard
  if (!(timeout >= timeouts.least && timeout <= timeouts.most)) {
    return yield* new StoreInvalid({ message: "GATEWAY_STORE_TIMEOUT_MS must be 50 to 1500" })
  }
  const previous = options.previousKey === undefined ? undefined : Redacted.value(options.previousKey)
  return { address, node, timeout, seals: makeEncryption(Redacted.value(options.key), previous) }
})

/** Connects within 30 s. */
const connected = (address: StoreAddress, timeout: number) =>
  Effect.suspend(() => {
    let last: unknown
    const failed = (error: unknown) => {
      last = error
    }
    return Effect.raceFirst(
      makeClient(address, timeout, failed),
      Effect.andThen(
        Effect.sleep(1_000),
        Effect.andThen(
          Effect.suspend(() => Effect.logWarning(`Waiting for the store: ${silent(address, last).message}`)),
          Effect.never
        )
      )
    ).pipe(
      Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => Effect.fail(silent(address, last)) }),
      Effect.catchTag("StoreUnavailable", () => Effect.fail(silent(address, last)))
    )
  })

/** Makes the store's service. At the end of the scope the node leaves. */
export const makeStore = Effect.fnUntraced(function*(
  options: StoreOptions
): Effect.fn.Return<StoreShape, StoreInvalid, Scope.Scope> {
  const { address, node, seals, timeout } = yield* readOptions(options)
  const client = yield* connected(address, timeout)
  const version = yield* checkServer(client, address)

  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const now = () => clock.currentTimeMillisUnsafe()
  const about: About = Effect.annotateLogs({ url: address.shown, node })
  const agree = (field: string, ours: string) => agreeOn(client, seals, field, ours)
  const bulkTurn = yield* Semaphore.make(1)
  const nudges = yield* Queue.sliding<void>(1)

  const facts = new NodeFacts()
  const listeners = new StoreListeners()
  const names = new NameSecret((ours) => agree("names", ours))
  const storeClock = new StoreClock()
  const eviction = new EvictionWatch(client, now, about)
  const availability = new Availability(client, listeners, now, about)
  const subscription = new Subscription(client, listeners, node, scope)
  // The next heartbeat says that the server has everything.
  const broughtBack = new BroughtBack(scope, () => Queue.offerUnsafe(nudges, undefined))
  const parts = { now, about, client, availability, broughtBack, facts, listeners, storeClock, subscription }
  const attachment = new Attachment({ ...parts, node, version: options.version ?? "", names })
  const heartbeat = new Heartbeat({ ...parts, attachment, eviction, nudges })

  const joining = Effect.gen(function*() {
    yield* attachment.start
    if ((yield* names.agree(randomBytes(32).toString("base64url"))) === "unreadable") {
      return yield* new StoreInvalid({
        message: options.otherKeyAdvice ??
          "The store key does not decrypt the data in the store: the other nodes use another key"
      })
    }
  })
  yield* Effect.catchTag(
    retryWhileUnavailable(joining),
    "StoreUnavailable",
    () => Effect.fail(silent(address, undefined))
  )
  yield* availability.set("up")
  yield* Effect.addFinalizer(() => attachment.leave)
  yield* Effect.forkScoped(heartbeat.run)

  return {
    secrets: { ...seals, agree, nameOf: (text) => names.nameOf(text) },
    membership: {
      node,
      holds: (holdings, counts) => {
        facts.holdings = holdings
        facts.counts = counts
      },
      bringsBack: (bring) => broughtBack.register(bring),
      setRevision: (revision) => {
        facts.revision = revision
      },
      revision: () => facts.revision,
      watchDraining: (isDraining) => {
        facts.isDraining = isDraining
      },
      isDraining: () => facts.isDraining(),
      countLostWrite: () => {
        facts.lostWrites++
      },
      counts: () => ({ ...client.counts(), lostWrites: facts.lostWrites })
    },
    epoch: () => attachment.epoch,
    status: () => ({
      state: availability.state,
      since: availability.since,
      url: address.shown,
      version,
      roundTrip: client.roundTrip(),
      detail: eviction.fault === undefined ? undefined : `The store ${eviction.fault}`
    }),
    isUp: () => availability.isUp,
    clockOffset: () => storeClock.offset,
    run: (name, ...args) => availability.watched(attachment.run(name, args)),
    send: (command, ...args) =>
      Effect.suspend(() =>
        availability.isUp ? availability.watched(client.send(command, ...args)) : Effect.fail(unavailable)
      ),
    bulk: (commands) => availability.whileUp(bulkTurn.withPermit(client.bulk(commands))),
    listen: (listener) => listeners.listen(listener)
  }
})
