/**
 * Renews the token of one account: at three quarters of its life in the background, and before the next request once it has ended.
 *
 * The one thing to know: a token is issued in a fiber of the pool, not of the request that needs it. Any number of requests wait
 * for one token, and the end of one request does not end the issue.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import {
  type CredentialFacts,
  type CredentialSource,
  failureText,
  type IssuedToken,
  sourceFailed,
  type TokenMaker,
  unusedFacts
} from "./CredentialSource.ts"

/** After a failed renewal the next one waits this long, in milliseconds, or a sixteenth of the token's life. */
const longestPause = 60_000
const shortestPause = 1_000

/** The parts of a token's life between which its renewal begins, at random, so that tokens issued together are renewed apart. */
const renewFrom = 0.7
const renewTo = 0.8

/** A token for an account without one, or one that replaces a token by a newer one. */
export type LoginKind = "login" | "refresh"

/** A held token and its times. */
export interface HeldToken extends IssuedToken {
  /** When it was issued, in Unix milliseconds. */
  readonly issued: number
  /** When its source gave it last, in Unix milliseconds: from then on it `lives`. */
  readonly given: number
  /** Milliseconds since then. */
  readonly age: () => number
}

/** Where the token of an account is kept. */
export interface TokenPlace {
  /** The kept token, even after its end; `undefined` without one, or once the upstream has refused it. */
  readonly kept: () => HeldToken | string | undefined
  /** Monotonic milliseconds, or those of a clock that nodes share. */
  readonly now: () => number
  /** Issues a token, at most once at a time, and keeps it. */
  readonly obtain: (issue: TokenMaker["issue"], kind: LoginKind) => Effect.Effect<string, UpstreamFailure>
  /** Forgets a token that the upstream has refused, unless a newer one has replaced it. */
  readonly drop: (stale: string) => void
}

/** What a source is made from. */
export interface RenewalOptions {
  /** `undefined` for an account that has only a token. */
  readonly maker: TokenMaker | undefined
  /** The upstream needs no credential. */
  readonly isAnonymous: boolean
  /** The age in milliseconds at which a token without a known life is replaced; read at each use. */
  readonly refreshAfter: () => number
  /** Runs an effect apart from the requests that need it; returns an interrupted fiber once the pool is closed. */
  readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Unix milliseconds. */
  readonly unixNow: () => number
}

/** A source over the place where its token is kept. */
export interface RenewedSource extends CredentialSource {
  /** The token that the next use gets without an issue. */
  readonly held: () => string | undefined
  /** Forgets a token that the upstream has refused, unless a newer one has replaced it. */
  readonly drop: (stale: string | undefined) => void
  /** Asks for a new token, even the one that the upstream has refused. */
  readonly again: Effect.Effect<string | undefined, UpstreamFailure>
  /** Asks the source for a newer token, as an operator orders it. While it fails, the held one serves. `undefined` without a source. */
  readonly renewNow: Effect.Effect<void, UpstreamFailure> | undefined
  /** `undefined` for a login or a configured token. */
  readonly facts: () => CredentialFacts | undefined
}

/** The kind of sources that log in. */
export const loginKind = "login"

const noToken = (): UpstreamFailure =>
  new UpstreamFailure({
    phase: "login",
    kind: "refused",
    refusal: "token",
    message: "The account has no token that works and no login to get one"
  })

/** A text of the configuration lives until it is refused. */
const serves = (kept: HeldToken | string): boolean =>
  typeof kept === "string" || kept.lives === undefined || kept.age() < kept.lives

/** Makes the source of an account's tokens. */
export const makeSource = (options: RenewalOptions, place: TokenPlace): RenewedSource => {
  const { isAnonymous, maker, unixNow } = options
  let noRenewalBefore = 0
  let running: Deferred.Deferred<string, UpstreamFailure> | undefined
  /** The token that the upstream refused last. */
  let refused: string | undefined
  let failure: CredentialFacts["failure"]

  const note = (exit: Exit.Exit<unknown, UpstreamFailure>): void => {
    const reason = Exit.isFailure(exit) ? exit.cause.reasons.find(({ _tag }) => _tag === "Fail") : undefined
    if (Exit.isSuccess(exit)) failure = undefined
    else if (reason?._tag === "Fail") failure = { at: unixNow(), message: failureText(reason.error) }
  }

  /** Issues a token that is not the refused one, and notes a failure before others learn of it. */
  const issueOf = (maker: TokenMaker): TokenMaker["issue"] =>
    Effect.flatMap(Random.next, (random) =>
      Effect.onExit(
        Effect.flatMap(maker.issue, (issued) =>
          issued.token === refused && maker.kind !== loginKind
            ? Effect.fail(sourceFailed(maker.kind, "it still has the token that the upstream refused"))
            : Effect.succeed({
              ...issued,
              renewAfter: issued.renewAfter ??
                (issued.lives && issued.lives * (renewFrom + (renewTo - renewFrom) * random))
            })),
        (exit) => Effect.sync(() => note(exit))
      ))

  const start = (maker: TokenMaker, kind: LoginKind): Deferred.Deferred<string, UpstreamFailure> => {
    const deferred = Deferred.makeUnsafe<string, UpstreamFailure>()
    running = deferred
    const fiber = options.fork(
      Effect.flatMap(Effect.exit(place.obtain(issueOf(maker), kind)), (exit) => {
        running = undefined
        // Another node may have failed for this one.
        note(exit)
        if (Exit.isSuccess(exit)) noRenewalBefore = 0
        return Deferred.done(deferred, exit)
      })
    )
    // An issue whose fiber is interrupted, or never ran since the pool is closed, must not leave requests waiting.
    fiber.addObserver(() => Deferred.doneUnsafe(deferred, Exit.interrupt()))
    return deferred
  }

  const join = (maker: TokenMaker) => Deferred.await(running ?? start(maker, "login"))

  const without = (): CredentialSource["current"] =>
    maker !== undefined
      ? Effect.suspend(() => join(maker))
      : isAnonymous
      ? Effect.undefined
      : Effect.fail(noToken())

  const renewIfDue = (maker: TokenMaker, { age, lives, renewAfter }: HeldToken): void => {
    if (running !== undefined || age() < (renewAfter ?? options.refreshAfter())) return
    const now = place.now()
    if (now < noRenewalBefore) return
    noRenewalBefore = now + Math.min(longestPause, Math.max(shortestPause, (lives ?? Infinity) / 16))
    start(maker, "refresh")
  }

  const tokenNow = (): CredentialSource["current"] => {
    const kept = place.kept()
    if (kept === undefined) return without()
    if (typeof kept === "string") return Effect.succeed(kept)
    if (!serves(kept)) return without()
    if (maker !== undefined) renewIfDue(maker, kept)
    return Effect.succeed(kept.token)
  }

  const held = (): string | undefined => {
    const kept = place.kept()
    return kept === undefined || !serves(kept) ? undefined : typeof kept === "string" ? kept : kept.token
  }

  const drop: RenewedSource["drop"] = (stale) => {
    if (stale === undefined || held() !== stale) return
    refused = stale
    place.drop(stale)
  }

  const times = (): Pick<CredentialFacts, "expires" | "renewed"> => {
    const kept = place.kept()
    if (kept === undefined || typeof kept === "string") return { expires: undefined, renewed: undefined }
    return { expires: kept.lives && kept.given + kept.lives, renewed: kept.issued }
  }

  return {
    get current() {
      return tokenNow()
    },
    renew: (stale) =>
      Effect.suspend(() => {
        drop(stale)
        return tokenNow()
      }),
    expires: () => times().expires,
    identity: () => maker?.identity() ?? "",
    held,
    drop,
    again: Effect.suspend(() => {
      refused = undefined
      return maker === undefined ? without() : join(maker)
    }),
    renewNow: maker === undefined || maker.kind === loginKind
      ? undefined
      : Effect.asVoid(
        Effect.suspend(() => Deferred.await(running ?? start(maker, held() === undefined ? "login" : "refresh")))
      ),
    facts: () =>
      maker === undefined || maker.kind === loginKind
        ? undefined
        : { ...unusedFacts(maker), ...times(), failure }
  }
}
