/**
 * The token of one account with one driver: logged in for at the first use, and refreshed while the old token serves.
 *
 * The one thing to know: a login runs in a fiber of the pool, not of the request that needs it. Any number of requests wait
 * for one login, and the end of one request does not end the login.
 */
import type { Clock } from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { monotonicMillis } from "../domain/time.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Credential, Driver, Login } from "../upstream/Upstream.ts"

/** After a failed background refresh the next one waits this long, in milliseconds; the old token serves meanwhile. */
const refreshRetry = 60_000

/** A login for an account without a token, or one that replaces a token by a newer one. */
export type LoginKind = "login" | "refresh"

/** What the tokens of an account are made from. */
export interface TokensOptions {
  readonly driver: Driver
  /** Login data; `undefined` for an account that has only a token. */
  readonly login: Login | undefined
  /** The configured token; used until the upstream refuses it. */
  readonly configured: string | undefined
  /** The age in milliseconds at which a login's token is replaced in the background; read at each use. */
  readonly refreshAfter: () => number
  /** Runs a login apart from the requests that need it; returns an interrupted fiber once the pool is closed. */
  readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Runs at the end of each login, before the requests that wait for it go on. */
  readonly ended: (exit: Exit.Exit<string, UpstreamFailure>, kind: LoginKind) => Effect.Effect<void>
}

/** The tokens of an account. */
export interface AccountTokens {
  readonly driver: Driver
  readonly credential: Credential
  /** Forgets a token that the upstream has refused, unless a newer one has replaced it. */
  readonly drop: (stale: string | undefined) => void
  /** The token that the next use gets without a login. */
  readonly held: () => string | undefined
  /** Tries the account: by a login if it has one, else by its configured token. */
  readonly probe: Effect.Effect<void, UpstreamFailure>
}

/** Where the token of an account is kept. */
interface TokenPlace extends Pick<AccountTokens, "drop" | "held"> {
  /** When the held token was got by a login, on the clock of `now`; `undefined` for a configured token. */
  readonly since: () => number | undefined
  /** Milliseconds. */
  readonly now: () => number
  /** Logs in and keeps the token. Calls `TokensOptions.ended`. */
  readonly logIn: (login: Login, kind: LoginKind) => Effect.Effect<string, UpstreamFailure>
  /** Takes the configured token back into use, once the upstream has accepted it. */
  readonly verified: () => void
}

/** A token that cannot be renewed. */
export const fixedCredential = (token: string | undefined): Credential => ({
  token: Effect.succeed(token),
  renew: () =>
    Effect.fail(
      // The phase is not "login": the upstream refused the token itself.
      new UpstreamFailure({ phase: "resume", kind: "refused", refusal: "token", message: "it cannot be renewed" })
    )
})

const noToken = (): UpstreamFailure =>
  new UpstreamFailure({
    phase: "login",
    kind: "refused",
    refusal: "token",
    message: "The account has no token that works and no login to get one"
  })

/** Logs in; fails where accounts have a token only. */
export const logInTo = ({ capabilities, name }: Driver, login: Login): Effect.Effect<string, UpstreamFailure> =>
  capabilities.login?.(login) ?? new UpstreamFailure({
    phase: "login",
    kind: "refused",
    status: 403,
    message: `the driver ${name} knows no logins; configure an API key as the account's token`
  })

/** Makes the tokens of an account over the place where they are kept. */
export const makeTokensOver = (options: TokensOptions, place: TokenPlace): AccountTokens => {
  const { configured, driver } = options
  const login = driver.capabilities.login === undefined ? undefined : options.login
  // An account with credentials is never used without them.
  const isAnonymous = driver.isAnonymous && options.login === undefined && configured === undefined
  let noRefreshBefore = 0
  let running: Deferred.Deferred<string, UpstreamFailure> | undefined

  const start = (login: Login, kind: LoginKind): Deferred.Deferred<string, UpstreamFailure> => {
    const deferred = Deferred.makeUnsafe<string, UpstreamFailure>()
    running = deferred
    const fiber = options.fork(
      Effect.flatMap(Effect.exit(place.logIn(login, kind)), (exit) => {
        running = undefined
        return Deferred.done(deferred, exit)
      })
    )
    // A login whose fiber is interrupted, or never ran since the pool is closed, must not leave requests waiting.
    fiber.addObserver(() => Deferred.doneUnsafe(deferred, Exit.interrupt()))
    return deferred
  }

  const join = (login: Login) => Deferred.await(running ?? start(login, "login"))

  const tokenNow = (): Credential["token"] => {
    const held = place.held()
    if (held === undefined) {
      if (login !== undefined) return Effect.suspend(() => join(login))
      return isAnonymous ? Effect.undefined : Effect.fail(noToken())
    }
    const since = place.since()
    if (login !== undefined && since !== undefined && running === undefined) {
      const now = place.now()
      if (now >= noRefreshBefore && now - since >= options.refreshAfter()) {
        noRefreshBefore = now + refreshRetry
        start(login, "refresh")
      }
    }
    return Effect.succeed(held)
  }

  return {
    driver,
    credential: {
      get token() {
        return tokenNow()
      },
      renew: (stale) =>
        Effect.suspend(() => {
          place.drop(stale)
          return tokenNow()
        })
    },
    drop: place.drop,
    held: place.held,
    probe: Effect.suspend(() =>
      login === undefined
        ? Effect.tap(driver.verify(configured), () => Effect.sync(place.verified))
        : Effect.asVoid(join(login))
    )
  }
}

/** Makes the tokens of an account in memory. */
export const makeTokens = (options: TokensOptions, clock: Clock): AccountTokens => {
  let held = options.configured
  let since: number | undefined
  const now = () => monotonicMillis(clock)
  return makeTokensOver(options, {
    held: () => held,
    since: () => since,
    now,
    logIn: (login, kind) =>
      Effect.flatMap(Effect.exit(logInTo(options.driver, login)), (exit) => {
        if (Exit.isSuccess(exit)) {
          held = exit.value
          since = now()
        }
        return Effect.andThen(options.ended(exit, kind), exit)
      }),
    drop: (stale) => {
      if (stale === undefined || held !== stale) return
      held = undefined
      since = undefined
    },
    verified: () => {
      held = options.configured
    }
  })
}
