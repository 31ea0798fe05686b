/**
 * Reads which models the servers of the upstreams list, and what they say about them. Names of the default upstream's server mean its own models.
 *
 * The one thing to know: a list is read with what belongs to its upstream alone. The upstream, its driver and its accounts are of one
 * configuration, and an account's proxy carries the request that has the account's token.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Fiber from "effect/Fiber"
import * as FiberMap from "effect/FiberMap"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { Account } from "../config/Account.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig, UpstreamConfig } from "../config/GatewayConfig.ts"
import { ListedModels } from "../config/ListedModels.ts"
import { listedName, type ServersModel } from "../domain/routes.ts"
import { monotonicMillis } from "../domain/time.ts"
import { driverThrough } from "./connection.ts"
import { type Away, missingModels, notAnswering, type ServerFinding, ServerFindings } from "./ServerFindings.ts"
import type { Driver } from "./Upstream.ts"
import { type Drivers, Upstreams } from "./Upstreams.ts"

const interval: Duration.Input = "10 minutes"

/** How long a server that does not answer is left alone. */
const whileAway: Duration.Input = "30 seconds"

/** The longest that the start waits for the first list, and a request with an unknown name for a new one. */
const longestWait = "2 seconds"

/** Milliseconds after a read within which unknown names cause no other one. */
const leastPause = 5_000

/** Accounts of an upstream whose tokens are tried for one list. */
const mostTokens = 3

/** What a list is read with. */
interface Reader {
  readonly upstream: UpstreamConfig
  readonly driver: Driver
  readonly credentials: ReadonlyArray<Pick<Account, "proxy" | "token">>
}

const noCredential: Reader["credentials"] = [{ proxy: undefined, token: undefined }]

/** The credentials of the first enabled accounts with tokens, by upstream. */
const credentialsOf = ({ accounts }: GatewayConfig): ReadonlyMap<string, Reader["credentials"]> => {
  const credentials = new Map<string, Array<Reader["credentials"][number]>>()
  for (const { disabled, proxy, token, upstream } of accounts) {
    if (disabled || token === undefined) continue
    const own = credentials.get(upstream)
    if (own === undefined) credentials.set(upstream, [{ proxy, token }])
    else if (own.length < mostTokens) own.push({ proxy, token })
  }
  return credentials
}

/** The readers of the enabled upstreams whose drivers read lists, by name. */
const readersOf = (config: GatewayConfig, drivers: Drivers): ReadonlyMap<string, Reader> => {
  const credentials = credentialsOf(config)
  return new Map([...config.upstreams].flatMap(([name, upstream]): ReadonlyArray<[string, Reader]> => {
    const { enabled } = upstream
    const driver = drivers.get(name)
    return enabled && driver?.capabilities.listModels !== undefined
      ? [[name, { upstream, driver, credentials: credentials.get(name) ?? noCredential }]]
      : []
  }))
}

const haveSameReaders = (one: GatewayConfig, other: GatewayConfig): boolean =>
  one.upstreams === other.upstreams && one.account_table === other.account_table

const isSame = (one: Reader | undefined, other: Reader): boolean =>
  one?.driver === other.driver && Equal.equals(one.credentials, other.credentials)

/** The first list that an account gets. */
const listOf = ({ credentials, driver }: Reader) =>
  Effect.firstSuccessOf(
    credentials.map(({ proxy, token }) =>
      driverThrough(driver, proxy).capabilities.listModels!(token === undefined ? undefined : Redacted.value(token))
    )
  )

/** What one read shows, with the list if there is one. */
interface ReadList {
  readonly upstream: UpstreamConfig
  readonly models: ReadonlyArray<ServersModel> | undefined
  readonly findings: ReadonlyArray<ServerFinding>
}

/** Reads a list once. A list that cannot be read is logged for debugging. */
const readList = (reader: Reader): Effect.Effect<ReadList> =>
  Effect.matchEffect(listOf(reader), {
    onSuccess: (models) =>
      Effect.succeed({
        upstream: reader.upstream,
        models,
        findings: missingModels(reader.upstream, models.map(listedName))
      }),
    onFailure: (failure) =>
      Effect.logDebug("The server's list of models could not be read", failure.message).pipe(
        Effect.annotateLogs({ upstream: reader.upstream.name }),
        Effect.as({
          upstream: reader.upstream,
          models: undefined,
          findings: notAnswering(reader.upstream.name, failure)
        })
      )
  })

const isAway = (findings: ReadonlyArray<ServerFinding>): boolean => findings.some(({ kind }) => kind === "away")

/** Servers that are asked together. */
const readAtOnce = 8

/** Reads every list of a configuration once. */
export const readOnce = (config: GatewayConfig, drivers: Drivers): Effect.Effect<ReadonlyArray<ReadList>> =>
  Effect.forEach(readersOf(config, drivers).values(), readList, { concurrency: readAtOnce })

/**
 * Reads each list at start, after a change of the upstream or of its accounts, and every ten minutes; of a server that does not answer, every
 * 30 seconds. The start waits for the first reads, so that the first requests find the servers' models and the banner what is wrong; later
 * reads run in the background, in one fiber for each upstream. A failed read keeps the last list. An upstream that is disabled or has no
 * lists is not asked. A name that no list has causes another read. Returns what the reads show.
 */
export const startReadingModels = Effect.gen(function*() {
  const config = yield* ConfigStore
  const { setListedModels } = yield* ListedModels
  const upstreams = yield* Upstreams
  const first = yield* Deferred.make<void>()
  const reading = yield* FiberMap.make<string>()
  let readers: ReadonlyMap<string, Reader> = new Map()
  /** What the last read of each upstream has shown. */
  const findings = new Map<string, ReadonlyArray<ServerFinding>>()
  /** The servers that do not answer, each since the read that has found it so first. */
  const away = new Map<string, Away>()
  /** When the last read of each upstream began or ended, in monotonic milliseconds. */
  const readAt = new Map<string, number>()
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  /** The read that an unknown name has caused. */
  let further: Fiber.Fiber<unknown> | undefined

  /** Notes what a read has shown, and logs what is new. */
  const found = (name: string, now: ReadonlyArray<ServerFinding>) => {
    const before = findings.get(name) ?? []
    findings.set(name, now)
    const silent = now.find(({ kind }) => kind === "away")
    if (silent?.kind !== "away") away.delete(name)
    else away.set(name, { reason: silent.reason, since: away.get(name)?.since ?? clock.currentTimeMillisUnsafe() })
    const isNew = ({ message }: ServerFinding) => !before.some((known) => known.message === message)
    return Effect.forEach(now.filter(isNew), ({ message }) => Effect.logWarning(message), { discard: true }).pipe(
      Effect.andThen(isAway(before) && !isAway(now) ? Effect.logInfo(`upstream ${name} answers`) : Effect.void)
    )
  }

  const isFirstDone = () => Array.from(readers.keys()).every((name) => findings.has(name))

  /** Reads a list. Returns when it is read again. */
  const read = (reader: Reader) =>
    Effect.gen(function*() {
      const { upstream } = reader
      readAt.set(upstream.name, monotonicMillis(clock))
      const list = yield* readList(reader)
      readAt.set(upstream.name, monotonicMillis(clock))
      yield* found(upstream.name, list.findings)
      if (list.models !== undefined) yield* setListedModels(upstream, list.models)
      if (isFirstDone()) yield* Deferred.succeed(first, undefined)
      return isAway(list.findings) ? whileAway : interval
    })

  const follow = Effect.gen(function*() {
    const current = config.now()
    const drivers = yield* upstreams.all
    // The drivers may be of a later configuration, whose change is the next one here.
    if (!haveSameReaders(config.now(), current)) return
    const before = readers
    readers = readersOf(current, drivers)
    for (const name of before.keys()) {
      if (readers.has(name)) continue
      yield* FiberMap.remove(reading, name)
      findings.delete(name)
      away.delete(name)
    }
    for (const [name, reader] of readers) {
      if (isSame(before.get(name), reader)) continue
      yield* FiberMap.run(reading, name, Effect.forever(Effect.flatMap(read(reader), Effect.sleep)))
    }
    if (isFirstDone()) yield* Deferred.succeed(first, undefined)
  })

  yield* config.changes.pipe(
    Stream.changesWith(haveSameReaders),
    Stream.runForEach(() => follow),
    Effect.forkScoped
  )
  yield* Effect.timeoutOption(Deferred.await(first), longestWait)

  const readAgain = Effect.suspend(() => {
    if (further !== undefined) return Fiber.await(further)
    const { unnamed } = config.now().route_table.config
    const reader = readers.get(unnamed)
    const wasRead = monotonicMillis(clock) < (readAt.get(unnamed) ?? -Infinity) + leastPause
    if (reader === undefined || wasRead) return Effect.void
    const ended = Effect.sync(() => {
      further = undefined
    })
    return Effect.flatMap(Effect.forkIn(Effect.ensuring(read(reader), ended), scope), (fiber) => {
      further = fiber
      return Fiber.await(fiber)
    })
  })

  return ServerFindings.of({
    readAgain: Effect.asVoid(Effect.timeoutOption(readAgain, longestWait)),
    now: () => Array.from(config.now().upstreams.keys()).flatMap((name) => findings.get(name) ?? []),
    away: () => away
  })
})

/** The reading as a part of the gateway's services. */
export const layerReadModels = Layer.effect(ServerFindings, startReadingModels)
