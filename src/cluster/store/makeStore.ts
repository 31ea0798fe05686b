/**
 * Membership of a node in the store: it attaches, sends heartbeats, detects the loss of the store, and attaches again.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { createHmac, randomBytes } from "node:crypto"
import { parseStoreAddress, type StoreAddress, storeAddressFault } from "./address.ts"
import { makeClient, type StoreClient } from "./client.ts"
import { textOf, unusable } from "./connection.ts"
import { makeEncryption } from "./encryption.ts"
import { type ScriptName, scripts } from "./scripts.ts"
import {
  type HoldingCounts,
  type Holdings,
  leastKeyLength,
  nodeName,
  retryWhileUnavailable,
  type ReturnedData,
  StoreInvalid,
  type StoreOptions,
  type StoreShape,
  StoreUnavailable
} from "./StoreShape.ts"

const keys = "gw:{main}:"
const beatMillis = 1_000
const retryMillis = 500
/**
 * Limits of the command timeout in milliseconds. Three consecutive failures mean that the store is lost, which this node
 * must detect before the store drops it after 5 s.
 */
const timeouts = { least: 50, standard: 250, most: 1_500 }
/** Clock difference above which this node logs a warning. */
const wrongClockMillis = 5_000
/** Consecutive heartbeats with different counts after which the node attaches again. */
const beatsToDiffer = 3
/** Interval between checks of the server's eviction policy, in milliseconds. */
const evictionMillis = 30_000
/** Milliseconds without a reply after which the node reconnects. */
const hangMillis = 5_000

const unavailable = new StoreUnavailable({ message: "The store does not answer" })

const idForm = /^[A-Za-z0-9._-]{1,64}$/

const noHoldings: Holdings = { leases: [], tickets: [] }
const noCounts: HoldingCounts = { leases: 0, tickets: 0, unsettled: 0 }

/** A field of a reply to `INFO`. */
const infoField = (info: string, field: string): string =>
  new RegExp(`^${field}:(.*)$`, "m").exec(info)?.[1]?.trim() ?? ""

/** Describes an eviction policy that may remove keys; `undefined` for a safe one. */
const evictionOf = (info: string): string | undefined => {
  const policy = infoField(info, "maxmemory_policy")
  return Number(infoField(info, "maxmemory")) > 0 && policy !== "" && policy !== "noeviction"
    ? `may evict keys (maxmemory-policy ${policy}): use noeviction`
    : undefined
}

/** Fails for a server that is too old, may evict keys, or has another kind of address. Returns its version. */
const checkServer = Effect.fnUntraced(function*(
  client: StoreClient,
  address: StoreAddress
): Effect.fn.Return<string, StoreInvalid> {
  const info = yield* client.connection().redis.send<unknown>("INFO").pipe(
    Effect.map(String),
    Effect.mapError(unusable)
  )
  const version = infoField(info, "redis_version")
  if (!(Number.parseInt(version, 10) >= 7)) {
    return yield* new StoreInvalid({
      message: `the server of GATEWAY_STORE_URL has version ${version || "unknown"}; 7.0 or later is required`
    })
  }
  const eviction = evictionOf(info)
  if (eviction !== undefined) {
    return yield* new StoreInvalid({ message: `the server of GATEWAY_STORE_URL ${eviction}` })
  }
  if (!("guides" in address)) {
    if (infoField(info, "redis_mode") === "sentinel") {
      return yield* new StoreInvalid({
        message: "the server of GATEWAY_STORE_URL is a sentinel: use redis+sentinel://host:port/NAME"
      })
    }
    const found = yield* Effect.result(client.connection().redis.send<unknown>("EXISTS", `${keys}epoch`))
    if (found._tag === "Failure" && textOf(found.failure).startsWith("MOVED")) {
      return yield* new StoreInvalid({
        message: "the server of GATEWAY_STORE_URL is a node of a cluster: use redis+cluster://host:port"
      })
    }
  }
  return infoField(info, "valkey_version") || version
})

/** Makes the store's service. At the end of the scope the node leaves. */
export const makeStore = Effect.fnUntraced(function*(
  options: StoreOptions
): Effect.fn.Return<StoreShape, StoreInvalid, Scope.Scope> {
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
  const seals = makeEncryption(Redacted.value(options.key), previous)

  const connecting = Effect.raceFirst(
    makeClient(address, timeout),
    Effect.andThen(
      Effect.sleep(1_000),
      Effect.andThen(Effect.annotateLogs(Effect.logInfo("Waiting for the store"), { url: address.shown }), Effect.never)
    )
  )
  const silent = new StoreInvalid({ message: "the store of GATEWAY_STORE_URL does not answer" })
  const client = yield* Effect.timeoutOrElse(connecting, {
    duration: "30 seconds",
    orElse: () => Effect.fail(silent)
  }).pipe(Effect.catchTag("StoreUnavailable", () => Effect.fail(silent)))
  const version = yield* checkServer(client, address)

  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const now = () => clock.currentTimeMillisUnsafe()
  const startedAt = now()
  const listeners: Array<(kind: string, rest: string) => void> = []
  const attaching = yield* Semaphore.make(1)
  const bulkTurn = yield* Semaphore.make(1)
  /** Open while the store is lost. */
  const lost = yield* Latch.make(true)
  let holdings: () => Holdings = () => noHoldings
  let holdingCounts: () => HoldingCounts = () => noCounts
  let state: "up" | "lost" = "lost"
  let since = startedAt
  let epoch = ""
  let subscribedTo = ""
  let incarnation = ""
  /** The connect (`generation`) of the last attach: after another one, another server may answer. */
  let attachedOver = 0
  /** What this node brings back to a store that returns. */
  const brings: Array<(data: ReturnedData) => Effect.Effect<void, StoreUnavailable>> = []
  /** The data and the run id of the server that has all that this node knows. */
  let broughtTo = ""
  /** What another server is still to get. */
  let pending:
    | { readonly to: string; readonly effects: ReadonlyArray<Effect.Effect<void, StoreUnavailable>> }
    | undefined
  const bringTurn = yield* Semaphore.make(1)
  /** Milliseconds until the quiet period ends. */
  let quietLeft = 0
  const nudges = yield* Queue.sliding<void>(1)
  let attaches = 0
  let seen = 0
  let offset = 0
  let answeredAt = startedAt
  let revision = 0
  let draining = () => false
  let differing = 0
  let names = ""
  let lostWrites = 0
  let warned = false
  let eviction: string | undefined
  let evictionSeenAt = startedAt
  let subscription: Scope.Closeable | undefined

  const emit = (line: string) => {
    const space = line.indexOf(" ")
    const [kind, rest] = space === -1 ? [line, ""] : [line.slice(0, space), line.slice(space + 1)]
    for (const listener of listeners) listener(kind, rest)
  }

  /** A channel message: the number of its last line (0 for unnumbered ones), then lines. */
  const receive = (message: string) => {
    const [last = "0", ...lines] = message.split("\n")
    const number = Number(last)
    // Missed lines come with the next heartbeat; handling a line twice is harmless.
    if (number > 0 && number - lines.length === seen) seen = number
    for (const line of lines) emit(line)
  }

  const subscribe = Effect.gen(function*() {
    if (subscription !== undefined) yield* Scope.close(subscription, Exit.void)
    const own = subscription = yield* Scope.fork(scope)
    subscribedTo = epoch
    const queue = yield* Scope.provide(client.connection().redis.subscribe(`${keys}${epoch}:${node}`), own)
    yield* Queue.take(queue).pipe(
      Effect.flatMap(({ message }) => Effect.sync(() => receive(message))),
      Effect.forever,
      // The subscription failed or ended; the next heartbeat subscribes again.
      Effect.catch(() =>
        Effect.sync(() => {
          if (subscription === own) subscribedTo = ""
        })
      ),
      Effect.forkIn(own)
    )
  })

  const about = Effect.annotateLogs({ url: address.shown, node })

  const setState = (next: "up" | "lost") =>
    Effect.suspend(() => {
      if (state === next) return Effect.void
      state = next
      since = now()
      if (next === "lost") lost.openUnsafe()
      else lost.closeUnsafe()
      emit(next)
      return next === "up"
        ? about(Effect.logInfo("The store is available"))
        : about(Effect.logWarning("The store is lost: new requests are refused until it is back"))
    })

  const answered = () => {
    answeredAt = now()
  }

  const runAs = (name: ScriptName, as: string, args: ReadonlyArray<string>) =>
    Effect.tap(client.run(scripts[name], ["", node, as, ...args]), () => Effect.sync(answered))

  /** A secret that all nodes share; the first node stores it. */
  const agree = Effect.fnUntraced(function*(field: string, ours: string) {
    const place = `${keys}secrets:${field}`
    yield* client.send("HSETNX", `${keys}secrets`, field, seals.seal(place, ours))
    const sealed = String(yield* client.send("HGET", `${keys}secrets`, field))
    const opened = seals.open(place, sealed)
    if (opened !== undefined && seals.isOld(place, sealed)) {
      yield* client.send("HSET", `${keys}secrets`, field, seals.seal(place, opened))
    }
    return opened
  })

  /**
   * Attaches with the node's leases and waiters. `starts`: this is the first attach, without leases, and another node may
   * still use the id.
   */
  const attachNow = Effect.fnUntraced(function*(
    starts: boolean,
    wasEmptied = false
  ): Effect.fn.Return<{ readonly taken: boolean; readonly quiet: number }, StoreUnavailable> {
    const as = `${startedAt.toString(36)}${randomBytes(4).toString("hex")}-${++attaches}`
    const has = holdings()
    const known = epoch
    const over = client.generation()
    const reply = yield* runAs("attach", as, [
      starts ? "1" : "0",
      randomBytes(8).toString("hex"),
      known,
      options.version ?? "",
      String(startedAt),
      JSON.stringify(has.leases),
      JSON.stringify(has.tickets)
    ])
    if (reply[0] !== "ok") return { taken: true, quiet: 0 }
    const [, nextEpoch = "", storeTime, quiet, storeRevision, dropped, server = "", dataAt, ...lines] = reply
    incarnation = as
    attachedOver = over
    quietLeft = Number(quiet) - Number(storeTime)
    seen = lines.length
    differing = 0
    offset = Number(storeTime) - now()
    epoch = nextEpoch
    if (subscribedTo !== epoch || starts) yield* subscribe
    const isEmptied = wasEmptied || (known !== "" && known !== epoch)
    if (isEmptied) {
      // The store was emptied or replaced, so shared secrets may be lost or different.
      const agreed = yield* agree("names", names)
      if (agreed !== undefined && agreed !== names) {
        names = agreed
        return yield* attachNow(false, true)
      }
      emit("restored")
    }
    const to = `${epoch} ${server}`
    if (known === "") broughtTo = to
    const returns = to !== broughtTo
    if (returns && pending?.to !== to) {
      const data: ReturnedData = { isEmpty: isEmptied, at: isEmptied ? 0 : Number(dataAt) }
      pending = { to, effects: brings.map((bring) => bring(data)) }
    }
    for (const line of lines) emit(line)
    // The store dropped no leases that it returned without.
    if (dropped !== "0" && !returns) emit(`dropped ${dropped}`)
    emit(`config ${storeRevision}`)
    return { taken: false, quiet: quietLeft }
  })

  /** Brings back what this node knows. The next heartbeat says that it has, or tries again. */
  const bringBack = Effect.suspend(() => {
    const now = pending
    if (now === undefined) return Effect.void
    return Effect.flatMap(Effect.forEach(now.effects, Effect.exit), (exits) =>
      Effect.sync(() => {
        if (pending !== now || exits.some(Exit.isFailure)) return
        broughtTo = now.to
        pending = undefined
        Queue.offerUnsafe(nudges, undefined)
      }))
  }).pipe(bringTurn.withPermitsIfAvailable(1), Effect.forkIn(scope), Effect.asVoid)

  /** Attaches, unless another fiber has already. */
  const attach = (found: string) =>
    attaching.withPermit(
      Effect.suspend(() => incarnation === found ? Effect.asVoid(attachNow(false)) : Effect.void)
    ).pipe(Effect.tap(() => state === "up" ? bringBack : Effect.void))

  const run = (
    name: ScriptName,
    ...args: ReadonlyArray<string>
  ): Effect.Effect<ReadonlyArray<string>, StoreUnavailable> =>
    Effect.suspend(() => {
      if (state === "lost") return Effect.fail(unavailable)
      const as = incarnation
      if (attachedOver !== client.generation()) return Effect.andThen(attach(as), run(name, ...args))
      return Effect.flatMap(runAs(name, as, args), (reply) =>
        reply[0] === "lost" ? Effect.andThen(attach(as), run(name, ...args)) : Effect.succeed(reply))
    })

  const guarded = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.tapError(effect, () => client.isFailing() ? setState("lost") : Effect.void)

  /** Checks the eviction policy, which may change at run time. */
  const checkEviction = Effect.gen(function*() {
    if (now() - evictionSeenAt < evictionMillis) return
    const seen = evictionOf(String(yield* client.send("INFO", "memory")))
    evictionSeenAt = now()
    if (seen === eviction) return
    eviction = seen
    yield* about(
      seen === undefined
        ? Effect.logInfo("The store no longer evicts keys")
        : Effect.logWarning(`The store ${seen}`)
    )
  })

  const beat = Effect.gen(function*() {
    // The store grants nothing to a node without a subscription.
    if (subscribedTo !== epoch || attachedOver !== client.generation()) yield* attach(incarnation)
    yield* bringBack
    const before = holdingCounts()
    const sentAt = now()
    const as = incarnation
    const hasBrought = pending === undefined ? "1" : "0"
    const reply = yield* runAs("beat", as, [String(seen), draining() ? "draining" : "up", String(revision), hasBrought])
    if (reply[0] === "lost") return yield* attach(as)
    const [, storeTime, storeRevision, leases, tickets, quiet, sent, ...lines] = reply
    quietLeft = Number(quiet) - Number(storeTime)
    offset = Number(storeTime) - (sentAt + now()) / 2
    if (Math.abs(offset) > wrongClockMillis && !warned) {
      warned = true
      yield* about(Effect.logWarning("This node's clock differs from the store's")).pipe(
        Effect.annotateLogs({ seconds: Math.round(-offset / 1_000) })
      )
    }
    seen = Number(sent)
    for (const line of lines) emit(line)
    emit(`config ${storeRevision}`)
    emit("beat")
    const after = holdingCounts()
    const difference = Math.abs(Number(leases) - after.leases) + Math.abs(Number(tickets) - after.tickets)
    differing = difference > before.unsettled + after.unsettled + lines.length ? differing + 1 : 0
    if (differing >= beatsToDiffer) yield* attach(incarnation)
    yield* checkEviction
  })

  const unsubscribe = Effect.suspend(() => {
    subscribedTo = ""
    return subscription === undefined ? Effect.void : Scope.close(subscription, Exit.void)
  })

  const reattach = Effect.gen(function*() {
    if (now() - answeredAt > hangMillis || (yield* client.isMoved)) {
      answered()
      // A server that is no longer the primary may still send grants.
      yield* unsubscribe
      yield* client.replace
    }
    const found = incarnation
    yield* attach(found)
    yield* setState("up")
    yield* bringBack
  })

  /** Sentinels or a cluster may name another primary while the old one still answers. */
  const watchPrimary = Effect.flatMap(client.isMoved, (isMoved) => isMoved ? setState("lost") : Effect.void)

  /** The pause until the next heartbeat, which ends the quiet period in time. */
  const pause = Effect.suspend(() =>
    Effect.raceFirst(
      Effect.sleep(state === "lost" ? retryMillis : quietLeft > 0 ? Math.min(beatMillis, quietLeft + 5) : beatMillis),
      Queue.take(nudges)
    )
  )

  const heartbeats = Effect.suspend(() => {
    if (state === "up" && client.isFailing()) return Effect.andThen(setState("lost"), Effect.sleep(50))
    return state === "up"
      ? Effect.andThen(Effect.ignore(guarded(beat)), Effect.all([pause, watchPrimary], { concurrency: 2 }))
      : Effect.andThen(Effect.ignore(reattach), pause)
  })

  const joining = Effect.gen(function*() {
    for (let tries = 0;; tries++) {
      const { quiet, taken } = yield* attachNow(true)
      if (!taken) {
        // Other nodes may be about to reattach to an empty store.
        if (quiet > 0) yield* Effect.sleep(quiet)
        break
      }
      if (tries >= 10) {
        return yield* new StoreInvalid({ message: `GATEWAY_NODE_ID ${node} is in use by a running node` })
      }
      yield* Effect.sleep(retryMillis)
    }
    const agreed = yield* agree("names", randomBytes(32).toString("base64url"))
    if (agreed === undefined) {
      return yield* new StoreInvalid({
        message: options.otherKeyAdvice ??
          "The store key does not decrypt the data in the store: the other nodes use another key"
      })
    }
    names = agreed
  })
  yield* Effect.catchTag(retryWhileUnavailable(joining), "StoreUnavailable", () => Effect.fail(silent))
  yield* setState("up")
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.suspend(() => runAs("leave", incarnation, []))))
  yield* Effect.forkScoped(Effect.forever(heartbeats))

  return {
    ...seals,
    node,
    epoch: () => epoch,
    status: () => ({
      state,
      since,
      url: address.shown,
      version,
      roundTrip: client.roundTrip(),
      detail: eviction === undefined ? undefined : `The store ${eviction}`
    }),
    isUp: () => state === "up",
    run: (name, ...args) => guarded(run(name, ...args)),
    send: (command, ...args) =>
      Effect.suspend(() => state === "up" ? guarded(client.send(command, ...args)) : Effect.fail(unavailable)),
    bulk: (commands) =>
      Effect.raceFirst(
        bulkTurn.withPermit(client.bulk(commands)),
        Effect.andThen(lost.await, Effect.fail(unavailable))
      ),
    bringsBack: (bring) => {
      brings.push(bring)
    },
    agree,
    nameOf: (text) => createHmac("sha256", names).update(text).digest("hex").slice(0, 16),
    clockOffset: () => offset,
    listen: (listener) => {
      listeners.push(listener)
    },
    holds: (whole, counts) => {
      holdings = whole
      holdingCounts = counts
    },
    setRevision: (next) => {
      revision = next
    },
    revision: () => revision,
    watchDraining: (isDraining) => {
      draining = isDraining
    },
    isDraining: () => draining(),
    countLostWrite: () => {
      lostWrites++
    },
    counts: () => ({ ...client.counts(), lostWrites })
  }
})
