/** A pool over a driver that tests control. */
import { assert } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Function from "effect/Function"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Accounts, anywhere, type Caller, type PlacementRequest } from "../../src/accounts/Accounts.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"
import { type Driver, type KeepsSessions, type Login, type LogsIn, sendsNothing } from "../../src/upstream/Upstream.ts"
import { Upstreams } from "../../src/upstream/Upstreams.ts"

const unused = Effect.die("not called")

/** What tests change of a driver. */
export interface DriverChanges extends Partial<Omit<Driver, "capabilities">> {
  readonly login?: LogsIn
  readonly sessions?: Partial<KeepsSessions>
}

/** A driver of the session kind whose logins give `<name>-1`, `<name>-2` …; `calls` records its calls. */
export const makeDriver = (
  { login, sessions, ...overrides }: DriverChanges = {},
  without: { readonly login?: undefined; readonly sessions?: undefined } = {}
) => {
  const calls: Array<string> = []
  const logins = new Map<string, number>()
  const driver: Driver = {
    name: "session",
    contract: undefined,
    isAnonymous: false,
    sends: sendsNothing,
    models: [],
    secrets: [],
    verify: (token) => Effect.sync(() => void calls.push(`verify ${token}`)),
    complete: () => unused,
    ...overrides,
    capabilities: {
      login: login ?? ((login) =>
        Effect.map(Effect.yieldNow, () => {
          const name = nameOf(login)
          const count = (logins.get(name) ?? 0) + 1
          logins.set(name, count)
          calls.push(`login ${name}`)
          return `${name}-${count}`
        })),
      sessions: {
        create: () => unused,
        list: () => unused,
        delete: (token, id) => Effect.sync(() => void calls.push(`delete ${id} with ${token}`)),
        deleteAll: (token) => Effect.sync(() => void calls.push(`delete all with ${token}`)),
        ...sessions
      },
      ...without
    }
  }
  return { driver, calls }
}

/** The name of an account in these tests: the part of its email before the `@`. */
export const nameOf = (login: Login): string => login.email?.replace(/@.*/, "") ?? login.mobile ?? ""

/** Accounts with a password each. */
export const accounts = (...names: ReadonlyArray<string>) =>
  names.map((name) => ({ email: `${name}@x.org`, password: "secret" }))

/** Builds a pool on a configuration; its upstream is an address by default. */
export const buildPool = Effect.fnUntraced(function*(
  config: RawConfig,
  driver: () => Driver = Function.constant(makeDriver().driver)
) {
  const raw: RawConfig = { upstream: { driver: "session", base_url: "http://127.0.0.1:9" }, ...config }
  const context = yield* Layer.build(
    Accounts.layer.pipe(
      Layer.provideMerge(ConfigStore.layerJson(raw)),
      Layer.provide(Upstreams.layerOf(Effect.sync(driver)))
    )
  )
  const store = Context.get(context, ConfigStore)
  return {
    pool: Context.get(context, Accounts),
    /** Changes groups of the configuration. */
    change: (changes: RawConfig) => store.update((raw) => Effect.succeed({ ...raw, ...changes }))
  }
})

export const managed = (target?: string): Caller => ({ _tag: "Managed", owner: "key", target })
export const direct = (token: string): Caller => ({ _tag: "Direct", owner: "direct", token, isLogin: false })
export { anywhere } from "../../src/accounts/Accounts.ts"

export type Pool = Accounts["Service"]

/** A lease with the scope that holds it. */
export const hold = Effect.fnUntraced(
  function*(pool: Pool, caller: Caller = managed(), request: Partial<PlacementRequest> = {}) {
    const scope = yield* Scope.make()
    const lease = yield* Scope.provide(pool.lease(caller, { ...anywhere, ...request }), scope)
    return { lease, account: lease.account?.key, free: Scope.close(scope, Exit.void) }
  }
)

/** Requests a lease in a fiber, which runs until it waits. */
export const ask = (pool: Pool, caller: Caller = managed(), request: Partial<PlacementRequest> = {}) =>
  Effect.tap(Effect.forkChild(hold(pool, caller, request)), () => Effect.yieldNow)

/** The code of the error that an effect fails with. */
export const errorOf = <A, R>(effect: Effect.Effect<A, { readonly code: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => error.code)

/** The status of an idle pool. */
export const idle = { waiting: 0, in_use: 0 }
/** Asserts fields of the queue status. */
export const shows = (pool: Pool, expected: Partial<Effect.Success<Pool["status"]>>) =>
  Effect.map(pool.status, (status) => assert.deepInclude(status, expected))

/** The upstream rejects a login's password. */
export const wrongCredentials = new UpstreamFailure({ phase: "login", kind: "refused", refusal: "login" })
