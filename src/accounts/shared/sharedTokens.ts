/**
 * The token of one account for all nodes: one node logs in and refreshes it, and a refusal holds for all nodes.
 *
 * The one thing to know: every token has a version. A grant names the current version; a node that has another one fetches the
 * token. A refused token is dropped by its version, so that a late refusal never ends a newer login.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StoreShape } from "../../cluster/store/Store.ts"
import type { ReturnedData, StoreUnavailable } from "../../cluster/store/StoreShape.ts"
import type { IssuedToken, TokenMaker } from "../../credentials/CredentialSource.ts"
import type { HeldToken, LoginKind } from "../../credentials/renewal.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { type AccountTokens, makeTokens, makeTokensOver, type TokensOptions } from "../tokens.ts"

/** A node that waits for another node's login asks the store this often if no message comes, in milliseconds. */
const pollInterval = 250

interface SharedTokensOptions extends TokensOptions {
  readonly store: StoreShape
  /** Unix time in milliseconds, by this node's clock. */
  readonly now: () => number
  /** The account's name in the store. */
  readonly name: () => string
  /** Calls `ended` at the end of every login of the account on any node; the returned function stops that. */
  readonly onLogin: (name: string, ended: () => void) => () => void
}

export interface SharedTokens extends AccountTokens {
  /** Receives the version that the store has. */
  readonly setCurrent: (version: string) => void
  /** Writes this node's token to a store that has lost it. */
  readonly restore: (data: ReturnedData) => Effect.Effect<void, StoreUnavailable>
}

/** A version of the token, as this node knows it. */
interface Known {
  readonly version: string
  /** `undefined` before the first login, and once the upstream has refused the token. */
  readonly token: HeldToken | undefined
  readonly refused: boolean
}

const nothing: Known = { version: "0", token: undefined, refused: false }

/** A token as the store has it encrypted: alone, or with the milliseconds of its life and those until its renewal, each in a line. */
const tokenText = ({ lives, renewAfter, token }: IssuedToken): string =>
  lives === undefined && renewAfter === undefined ? token : [token, lives, renewAfter].join("\n")

const millisOf = (text: string | undefined): number | undefined =>
  text === undefined || text === "" ? undefined : Number(text)

/** Reads a token that the store had encrypted. */
export const readToken = (text: string): IssuedToken => {
  const [token = "", lives, renewAfter] = text.split("\n")
  return { token, lives: millisOf(lives), renewAfter: millisOf(renewAfter) }
}

const failureJson = Schema.fromJsonString(UpstreamFailure)
const encodeFailure = Schema.encodeSync(failureJson)
const decodeFailure = Schema.decodeUnknownResult(failureJson)

/** Makes the tokens of an account. Those of a source that each node has for itself stay in memory. */
export const makeSharedTokens = (options: SharedTokensOptions): SharedTokens => {
  const { configured, name, source, store } = options
  if (source?.isOfNode === true) {
    return Object.assign(makeTokens(options), { setCurrent: () => undefined, restore: () => Effect.void })
  }
  let known = nothing
  /** The version that the store has, as last received. */
  let current = "0"
  const now = () => options.now() + store.clockOffset()

  const place = () => `gw:{main}:token:${name()}`
  const failurePlace = () => `gw:{main}:login:${name()}`

  /** Takes a token as the store has it: `<version> <time> <encrypted>`. */
  const take = (stored: string): void => {
    const [version = "0", time = "0", encrypted = ""] = stored.split(" ")
    const refused = encrypted === "-"
    const text = refused || encrypted === "" ? undefined : store.secrets.open(place(), encrypted)
    const token = text === undefined ? undefined : heldSince(readToken(text), Number(time))
    known = { version, token, refused: refused || (encrypted !== "" && token === undefined) }
    current = version
  }

  /** `since` is by the store's clock, which goes on while this computer sleeps. */
  const heldSince = (token: IssuedToken, since: number): HeldToken => ({
    ...token,
    issued: since,
    given: since,
    age: () => now() - since
  })

  const kept = (): HeldToken | string | undefined => known.token ?? (known.refused ? undefined : configured)

  /** Brings `known` up to the version that the store has. */
  const fetched = Effect.suspend(() =>
    current === known.version
      ? Effect.void
      : Effect.map(store.send("GET", place()), (text) => take(String(text ?? "0 0 ")))
  )

  const awaitLogin = (account: string) => {
    const ended = Deferred.makeUnsafe<void>()
    const off = options.onLogin(account, () => Deferred.doneUnsafe(ended, Exit.void))
    return Effect.ensuring(Effect.ignore(Effect.timeout(Deferred.await(ended), pollInterval)), Effect.sync(off))
  }

  /** The token or the failure of another node's login; `undefined` if it ended without either. */
  const otherNodesLogin: Effect.Effect<Result.Result<string | undefined, UpstreamFailure>, StoreUnavailable> = Effect
    .suspend(() =>
      Effect.flatMap(Effect.andThen(awaitLogin(name()), store.run("login", "look", name())), ([outcome, text = ""]) => {
        if (outcome === "running") return otherNodesLogin
        if (outcome === "token") {
          take(text)
          return Effect.succeed(Result.succeed(known.token?.token))
        }
        const failure = decodeFailure(store.secrets.open(failurePlace(), text) ?? "")
        return Effect.succeed(Result.isSuccess(failure) ? Result.fail(failure.success) : Result.succeed(undefined))
      })
    )

  /** Issues a token for all nodes. */
  const ownIssue = Effect.fnUntraced(function*(issue: TokenMaker["issue"], kind: LoginKind) {
    const exit = yield* Effect.exit(issue)
    const ended = Exit.isSuccess(exit)
      ? store.run("login", "done", name(), store.secrets.seal(place(), tokenText(exit.value)))
      : store.run("login", "failed", name(), store.secrets.seal(failurePlace(), failureText(exit)))
    const reply = yield* Effect.option(ended)
    if (Exit.isSuccess(exit)) {
      const version = reply._tag === "Some" && reply.value[0] === "ok" ? reply.value[1] ?? "0" : current
      known = { version, token: heldSince(exit.value, now()), refused: false }
      current = version
    }
    yield* options.ended(exit, kind)
    return (yield* exit).token
  })

  const obtain = Effect.fnUntraced(function*(
    issue: TokenMaker["issue"],
    kind: LoginKind
  ): Effect.fn.Return<string, UpstreamFailure> {
    for (;;) {
      const start = yield* Effect.option(store.run("login", "start", name(), known.version))
      // While the store is lost, the node issues for itself.
      if (start._tag === "None" || start.value[0] === "yours") return yield* ownIssue(issue, kind)
      if (start.value[0] === "token") take(start.value[1] ?? "")
      else {
        const outcome = yield* Effect.option(otherNodesLogin)
        if (outcome._tag === "Some" && Result.isFailure(outcome.value)) return yield* outcome.value.failure
      }
      if (known.token !== undefined) return known.token.token
    }
  })

  const tokens = makeTokensOver(options, {
    kept,
    now,
    obtain,
    drop: () => {
      const { version } = known
      known = { version, token: undefined, refused: true }
      options.fork(Effect.ignore(store.run("login", "drop", name(), version)))
    },
    verified: () => {
      known = { ...known, refused: false }
    }
  })
  const tokenNow = Effect.flatMap(Effect.ignore(fetched), () => tokens.current)

  return {
    ...tokens,
    current: tokenNow,
    renew: (stale) =>
      Effect.suspend(() => {
        tokens.drop(stale)
        return tokenNow
      }),
    setCurrent: (version) => {
      current = version
    },
    restore: ({ isEmpty }) =>
      Effect.suspend(() => {
        const { token: held, version } = known
        if (held === undefined) return Effect.void
        const encrypted = store.secrets.seal(place(), tokenText(held))
        current = "?"
        // An empty store counts its versions anew.
        const args = [name(), encrypted, String(Math.round(held.issued)), ...(isEmpty ? [] : [version])]
        return Effect.asVoid(store.run("login", "restore", ...args))
      })
  }
}

const failureText = (exit: Exit.Failure<unknown, UpstreamFailure>): string => {
  const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
  return failure === undefined ? "" : encodeFailure(failure)
}
