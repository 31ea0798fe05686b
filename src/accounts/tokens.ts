/** The token of one account with one driver: configured, from a login, or from the source of its credential. */
import type { Clock } from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type IssuedToken, sentToken, type TokenMaker } from "../credentials/CredentialSource.ts"
import {
  type HeldToken,
  type LoginKind,
  loginKind,
  makeSource,
  type RenewalOptions,
  type RenewedSource,
  type TokenPlace
} from "../credentials/renewal.ts"
import { monotonicMillis } from "../domain/time.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Credential, Driver, Login } from "../upstream/Upstream.ts"

/** What the tokens of an account are made from. */
export interface TokensOptions extends Omit<RenewalOptions, "isAnonymous" | "maker" | "unixNow"> {
  readonly driver: Driver
  readonly clock: Clock
  /** Login data; `undefined` for an account without a login. */
  readonly login: Login | undefined
  /** The source of the account's credential; `undefined` for an account with a token or a login. */
  readonly source: TokenMaker | undefined
  /** The configured token; used until the upstream refuses it. */
  readonly configured: string | undefined
  /** Runs at the end of each issue, before the requests that wait for it go on. */
  readonly ended: (exit: Exit.Exit<unknown, UpstreamFailure>, kind: LoginKind) => Effect.Effect<void>
}

/** The tokens of an account. */
export interface AccountTokens extends RenewedSource {
  readonly driver: Driver
  /** Tries the account: by its credential or login if it has one, else by its configured token. */
  readonly probe: Effect.Effect<void, UpstreamFailure>
}

/** Where the token of an account is kept. */
interface AccountTokenPlace extends TokenPlace {
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

/** Logs in; fails where accounts have a token only. */
export const logInTo = ({ capabilities, name }: Driver, login: Login): Effect.Effect<string, UpstreamFailure> =>
  capabilities.login?.(login) ?? new UpstreamFailure({
    phase: "login",
    kind: "refused",
    status: 403,
    message: `the driver ${name} knows no logins; configure an API key as the account's token`
  })

/** Issues tokens by logins. Their life is unknown. */
const loginsOf = (driver: Driver, login: Login): TokenMaker => ({
  kind: loginKind,
  identity: () => login.email ?? login.mobile ?? "",
  isOfNode: false,
  sends: "key",
  issue: Effect.map(
    Effect.suspend(() => logInTo(driver, login)),
    (token) => ({ token, lives: undefined, renewAfter: undefined })
  )
})

/** Makes the tokens of an account over the place where they are kept. */
export const makeTokensOver = (options: TokensOptions, place: AccountTokenPlace): AccountTokens => {
  const { clock, configured, driver, login, source } = options
  const maker = source ??
    (login === undefined || driver.capabilities.login === undefined ? undefined : loginsOf(driver, login))
  // An account with credentials is never used without them.
  const isAnonymous = driver.isAnonymous && login === undefined && source === undefined && configured === undefined
  const unixNow = () => clock.currentTimeMillisUnsafe()
  const made = makeSource({ ...options, maker, isAnonymous, unixNow }, place)
  const probe = maker === undefined
    ? Effect.tap(driver.verify(configured), () => Effect.sync(place.verified))
    : source === undefined
    ? Effect.asVoid(made.again)
    // The source may work while the upstream refuses its tokens.
    : Effect.flatMap(made.again, (token) => driver.verify(sentToken(source, token)))
  return Object.assign(made, { driver, probe })
}

/**
 * A token that was issued now. It ages by the monotonic clock and by the wall clock, whichever is further: the monotonic one stands still
 * while a computer sleeps.
 */
const heldNow = (token: IssuedToken, clock: Clock): HeldToken => {
  const [monotonic, issued] = [monotonicMillis(clock), clock.currentTimeMillisUnsafe()]
  return {
    ...token,
    issued,
    given: issued,
    age: () => Math.max(monotonicMillis(clock) - monotonic, clock.currentTimeMillisUnsafe() - issued)
  }
}

/** Makes the tokens of an account in memory. */
export const makeTokens = (options: TokensOptions): AccountTokens => {
  const { clock, configured, ended } = options
  let kept: HeldToken | string | undefined = configured
  const tokenOf = () => typeof kept === "string" ? kept : kept?.token
  return makeTokensOver(options, {
    kept: () => kept,
    now: () => monotonicMillis(clock),
    obtain: (issue, kind) =>
      Effect.flatMap(Effect.exit(issue), (exit) => {
        if (Exit.isFailure(exit)) return Effect.andThen(ended(exit, kind), Effect.failCause(exit.cause))
        const { token } = exit.value
        const isSame = kept !== undefined && typeof kept !== "string" && kept.token === token
        const issued = heldNow(exit.value, clock)
        // A source that has nothing newer has renewed nothing.
        kept = isSame && kept !== undefined && typeof kept !== "string" ? { ...issued, issued: kept.issued } : issued
        return Effect.as(isSame ? Effect.void : ended(exit, kind), token)
      }),
    drop: (stale) => {
      if (tokenOf() === stale) kept = undefined
    },
    verified: () => {
      kept = configured
    }
  })
}
