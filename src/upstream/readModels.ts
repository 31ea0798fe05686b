/**
 * Reads which models the servers of the upstreams list. Names of the default upstream's server mean its own models.
 *
 * The one thing to know: a list is read with what belongs to its upstream alone. The upstream, its driver and its accounts are of one
 * configuration, and an account's proxy carries the request that has the account's token.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as FiberMap from "effect/FiberMap"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Account } from "../config/Account.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig, UpstreamConfig } from "../config/GatewayConfig.ts"
import { defaultUpstream } from "../domain/upstreamNames.ts"
import type { Driver } from "./Upstream.ts"
import { type Drivers, Upstreams } from "./Upstreams.ts"
import { driverOver } from "./Way.ts"

const interval = "10 minutes"

/** The longest that the start waits for the first list. */
const longestWait = "2 seconds"

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
    return enabled && driver?.listModels !== undefined
      ? [[name, { upstream, driver, credentials: credentials.get(name) ?? noCredential }]]
      : []
  }))
}

const haveSameReaders = (one: GatewayConfig, other: GatewayConfig): boolean =>
  one.upstreams === other.upstreams && one.account_table === other.account_table

const isSame = (one: Reader | undefined, other: Reader): boolean =>
  one?.driver === other.driver && Equal.equals(one.credentials, other.credentials)

/** The names of the first list that an account gets. */
const namesIn = ({ credentials, driver }: Reader) =>
  Effect.firstSuccessOf(
    credentials.map(({ proxy, token }) =>
      driverOver(driver, proxy).listModels!(token === undefined ? undefined : Redacted.value(token))
    )
  )

/**
 * Reads each list at start, after a change of the upstream or of its accounts, and every ten minutes. The start waits for the first read
 * of the default upstream, so that the first requests find its server's models; later reads run in the background, in one fiber for each
 * upstream. A failed read keeps the last list. An upstream that is disabled or has no lists is not asked.
 */
export const startReadingModels = Effect.gen(function*() {
  const config = yield* ConfigStore
  const upstreams = yield* Upstreams
  const first = yield* Deferred.make<void>()
  const reading = yield* FiberMap.make<string>()
  let readers: ReadonlyMap<string, Reader> = new Map()

  const read = (reader: Reader) =>
    namesIn(reader).pipe(
      Effect.flatMap((names) => config.setListedModels(reader.upstream, names)),
      Effect.catch((failure) =>
        Effect.logDebug("The server's list of models could not be read", failure.message).pipe(
          Effect.annotateLogs({ upstream: reader.upstream.name })
        )
      ),
      Effect.andThen(reader.upstream.name === defaultUpstream ? Deferred.succeed(first, undefined) : Effect.void)
    )

  const follow = Effect.gen(function*() {
    const current = config.now()
    const drivers = yield* upstreams.all
    // The drivers may be of a later configuration, whose change is the next one here.
    if (!haveSameReaders(config.now(), current)) return
    const before = readers
    readers = readersOf(current, drivers)
    for (const name of before.keys()) if (!readers.has(name)) yield* FiberMap.remove(reading, name)
    for (const [name, reader] of readers) {
      if (isSame(before.get(name), reader)) continue
      yield* FiberMap.run(reading, name, Effect.repeat(read(reader), Schedule.spaced(interval)))
    }
    if (!readers.has(defaultUpstream)) yield* Deferred.succeed(first, undefined)
  })

  yield* config.changes.pipe(
    Stream.changesWith(haveSameReaders),
    Stream.runForEach(() => follow),
    Effect.forkScoped
  )
  yield* Effect.timeoutOption(Deferred.await(first), longestWait)
})

/** The reading as a part of the gateway's services. */
export const layerReadModels = Layer.effectDiscard(startReadingModels)
