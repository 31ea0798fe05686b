/**
 * The token of one account with one driver: in memory only, logged in for on first need, refreshed while the old one serves.
 *
 * The one thing to know: a login runs in a fiber of the pool's, not of whoever needed it first. However many requests need a
 * token, one login runs, and the end of one request is not the end of the login that others wait for.
 */
import type { Clock } from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { monotonicMillis } from "../domain/monotonicMillis.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Credential, Driver, Login } from "../upstream/Upstream.ts"

/** A background refresh that failed is not tried again sooner, in milliseconds; the old token serves meanwhile. */
export const refreshRetry = 60_000

/** What the tokens of an account are made from. */
export interface TokensOptions {
  readonly driver: Driver
  /** Login data; `undefined` for an account that has nothing but a token. */
  readonly login: Login | undefined
  /** The token that the operator configured; used until the upstream refuses it. */
  readonly configured: string | undefined
  /** Age in milliseconds at which a token got by login is replaced in the background; read at each use. */
  readonly refreshAfter: () => number
  /** Runs a login apart from the request that needs it; one that is interrupted where nothing runs any more. */
  readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Told about each login's end, before those who wait for it. */
  readonly ended: (exit: Exit.Exit<string, UpstreamFailure>, kind: "login" | "refresh") => Effect.Effect<void>
}

/** The tokens of an account. */
export interface AccountTokens {
  readonly driver: Driver
  readonly credential: Credential
  /** Forgets a token that the upstream has refused; one that has been replaced already is left alone. */
  readonly drop: (stale: string | undefined) => void
  /** The token that the next use would be given without a login. */
  readonly held: () => string | undefined
  /** Finds out whether the account works: by a login where it has one, else by its configured token. */
  readonly probe: Effect.Effect<void, UpstreamFailure>
}

/** An account with nothing to log in by. */
export const noToken = (): UpstreamFailure =>
  new UpstreamFailure({
    phase: "login",
    kind: "refused",
    code: 40001,
    message: "The account has no token that works and no login to get one"
  })

/** Lets nobody wait for a login whose fiber has ended, or never ran: the pool is closed. */
export const endedWith = (fiber: Fiber.Fiber<void>, login: Deferred.Deferred<string, UpstreamFailure>): void => {
  fiber.addObserver(() => Deferred.doneUnsafe(login, Exit.interrupt()))
}

/** Makes the tokens of an account that has not logged in yet. */
export const makeTokens = (options: TokensOptions, clock: Clock): AccountTokens => {
  const { configured, driver } = options
  const login = driver.capabilities.login ? options.login : undefined
  // An account with credentials is never used without them.
  const isAnonymous = driver.capabilities.anonymous && options.login === undefined && configured === undefined
  let current = configured
  /** When `current` was got by login; `undefined` for a configured one, whose age nobody knows. */
  let since: number | undefined
  let noRefreshBefore = 0
  let running: Deferred.Deferred<string, UpstreamFailure> | undefined

  const start = (login: Login, kind: "login" | "refresh"): Deferred.Deferred<string, UpstreamFailure> => {
    const deferred = Deferred.makeUnsafe<string, UpstreamFailure>()
    running = deferred
    const fiber = options.fork(
      Effect.exit(driver.login(login)).pipe(
        Effect.flatMap((exit) =>
          Effect.clockWith((clock) => {
            running = undefined
            if (Exit.isSuccess(exit)) {
              current = exit.value
              since = monotonicMillis(clock)
            }
            return options.ended(exit, kind)
          }).pipe(Effect.andThen(Deferred.done(deferred, exit)))
        )
      )
    )
    endedWith(fiber, deferred)
    return deferred
  }

  const join = (login: Login) => Deferred.await(running ?? start(login, "login"))

  const tokenNow = (): Credential["token"] => {
    if (current === undefined) {
      if (login !== undefined) return Effect.suspend(() => join(login))
      return isAnonymous ? Effect.undefined : Effect.fail(noToken())
    }
    if (login !== undefined && since !== undefined && running === undefined) {
      const now = monotonicMillis(clock)
      if (now >= noRefreshBefore && now - since >= options.refreshAfter()) {
        noRefreshBefore = now + refreshRetry
        start(login, "refresh")
      }
    }
    return Effect.succeed(current)
  }

  const drop = (stale: string | undefined) => {
    if (stale !== undefined && current === stale) {
      current = undefined
      since = undefined
    }
  }

  return {
    driver,
    credential: {
      get token() {
        return tokenNow()
      },
      renew: (stale) =>
        Effect.suspend(() => {
          drop(stale)
          return tokenNow()
        })
    },
    drop,
    held: () => current,
    probe: Effect.suspend(() => {
      if (login !== undefined) return Effect.asVoid(join(login))
      return Effect.tap(driver.verify(configured), () =>
        Effect.sync(() => {
          current = configured
        }))
    })
  }
}
