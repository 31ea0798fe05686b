/**
 * The token of one account that all nodes use: logged in for by one of them, refreshed by one of them, refused for all.
 *
 * The one thing to know: tokens go by versions. A grant tells which version is current; a node that has another one fetches it,
 * and what the upstream refused is dropped by its version, so that a late refusal never ends a newer login.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StoreShape } from "../../cluster/store/Store.ts"
import type { StoreUnavailable } from "../../cluster/store/StoreError.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { Login } from "../../upstream/Upstream.ts"
import { type AccountTokens, endedWith, noToken, refreshRetry, type TokensOptions } from "../tokens.ts"

/** Whoever waits for another node's login looks so often where no message comes, in milliseconds. */
const lookEvery = 250

export interface SharedTokensOptions extends TokensOptions {
  readonly store: StoreShape
  /** The account's name in the store. */
  readonly name: () => string
  /** Hears of the end of logins of this account anywhere; the returned function ends that. */
  readonly onLogin: (name: string, heard: () => void) => () => void
}

export interface SharedTokens extends AccountTokens {
  /** Says which version the store has. */
  readonly know: (version: string) => void
  /** Gives an empty store back what it had. */
  readonly restore: Effect.Effect<void>
}

/** A version of the token, as far as this node knows it. */
interface Known {
  readonly version: string
  /** `undefined`: there is none, or the upstream has refused it. */
  readonly token: string | undefined
  readonly refused: boolean
  /** When it was got, by the store's clock. */
  readonly since: number
}

const nothing: Known = { version: "0", token: undefined, refused: false, since: 0 }

const failureJson = Schema.fromJsonString(UpstreamFailure)
const encodeFailure = Schema.encodeSync(failureJson)
const decodeFailure = Schema.decodeUnknownResult(failureJson)

/** Makes the tokens of an account. */
export const makeSharedTokens = (options: SharedTokensOptions): SharedTokens => {
  const { configured, driver, name, store } = options
  const login = driver.capabilities.login ? options.login : undefined
  const isAnonymous = driver.capabilities.anonymous && options.login === undefined && configured === undefined
  let known = nothing
  /** The version that the store was heard to have. */
  let current = "0"
  let noRefreshBefore = 0
  let running: Deferred.Deferred<string, UpstreamFailure> | undefined

  const place = () => `gw:{main}:token:${name()}`
  const failurePlace = () => `gw:{main}:login:${name()}`

  /** Takes a token as it lies in the store: `<version> <time> <sealed>`. */
  const take = (text: string): void => {
    const [version = "0", time = "0", sealed = ""] = text.split(" ")
    const refused = sealed === "-"
    const token = refused || sealed === "" ? undefined : store.open(place(), sealed)
    known = { version, token, refused: refused || (sealed !== "" && token === undefined), since: Number(time) }
    current = version
  }

  const usable = (): string | undefined => known.token ?? (known.refused ? undefined : configured)

  /** What this node knows is what the store has. */
  const fetched = Effect.suspend(() =>
    current === known.version
      ? Effect.void
      : Effect.map(store.send("GET", place()), (text) => take(String(text ?? "0 0 ")))
  )

  const waited = (account: string) => {
    const heard = Deferred.makeUnsafe<void>()
    const off = options.onLogin(account, () => Deferred.doneUnsafe(heard, Exit.void))
    return Effect.ensuring(Effect.ignore(Effect.timeout(Deferred.await(heard), lookEvery)), Effect.sync(off))
  }

  /** The login that another node makes: its token, or its failure; `undefined` where neither came of it. */
  const others: Effect.Effect<Result.Result<string | undefined, UpstreamFailure>, StoreUnavailable> = Effect.suspend(
    () =>
      Effect.flatMap(Effect.andThen(waited(name()), store.run("login", "look", name())), ([outcome, text = ""]) => {
        if (outcome === "running") return others
        if (outcome === "token") {
          take(text)
          return Effect.succeed(Result.succeed(known.token))
        }
        const failure = decodeFailure(store.open(failurePlace(), text) ?? "")
        return Effect.succeed(Result.isSuccess(failure) ? Result.fail(failure.success) : Result.succeed(undefined))
      })
  )

  /** Logs in for all nodes. */
  const own = Effect.fnUntraced(function*(as: Login, kind: "login" | "refresh") {
    const exit = yield* Effect.exit(driver.login(as))
    const ended = Exit.isSuccess(exit)
      ? store.run("login", "done", name(), store.seal(place(), exit.value))
      : store.run("login", "failed", name(), store.seal(failurePlace(), failureText(exit)))
    const reply = yield* Effect.option(ended)
    if (Exit.isSuccess(exit)) {
      const version = reply._tag === "Some" && reply.value[0] === "ok" ? reply.value[1] ?? "0" : current
      known = {
        version,
        token: exit.value,
        refused: false,
        since: (yield* Clock.currentTimeMillis) + store.clockOffset()
      }
      current = version
    }
    yield* options.ended(exit, kind)
    return yield* exit
  })

  const loggedIn = Effect.fnUntraced(function*(
    as: Login,
    kind: "login" | "refresh"
  ): Effect.fn.Return<string, UpstreamFailure> {
    for (;;) {
      const start = yield* Effect.option(store.run("login", "start", name(), known.version))
      // Without the store the node logs in for itself.
      if (start._tag === "None" || start.value[0] === "yours") return yield* own(as, kind)
      if (start.value[0] === "token") take(start.value[1] ?? "")
      else {
        const outcome = yield* Effect.option(others)
        if (outcome._tag === "Some" && Result.isFailure(outcome.value)) return yield* outcome.value.failure
      }
      if (known.token !== undefined) return known.token
    }
  })

  const start = (as: Login, kind: "login" | "refresh"): Deferred.Deferred<string, UpstreamFailure> => {
    const deferred = Deferred.makeUnsafe<string, UpstreamFailure>()
    running = deferred
    const fiber = options.fork(
      Effect.flatMap(Effect.exit(loggedIn(as, kind)), (exit) => {
        running = undefined
        return Deferred.done(deferred, exit)
      })
    )
    endedWith(fiber, deferred)
    return deferred
  }

  const join = (as: Login) => Effect.suspend(() => Deferred.await(running ?? start(as, "login")))

  const token = Effect.flatMap(Effect.ignore(fetched), () =>
    Effect.clockWith((clock) => {
      const usableNow = usable()
      if (usableNow === undefined) {
        if (login !== undefined) return join(login)
        return isAnonymous ? Effect.undefined : Effect.fail(noToken())
      }
      if (login !== undefined && known.token !== undefined && running === undefined) {
        const now = clock.currentTimeMillisUnsafe() + store.clockOffset()
        if (now >= noRefreshBefore && now - known.since >= options.refreshAfter()) {
          noRefreshBefore = now + refreshRetry
          start(login, "refresh")
        }
      }
      return Effect.succeed(usableNow)
    }))

  const drop = (stale: string | undefined) => {
    if (stale === undefined || usable() !== stale) return
    const { version } = known
    known = { version, token: undefined, refused: true, since: 0 }
    options.fork(Effect.ignore(store.run("login", "drop", name(), version)))
  }

  return {
    driver,
    credential: {
      token,
      renew: (stale) =>
        Effect.suspend(() => {
          drop(stale)
          return token
        })
    },
    drop,
    held: usable,
    probe: Effect.suspend(() => {
      if (login !== undefined) return Effect.asVoid(join(login))
      return Effect.tap(driver.verify(configured), () =>
        Effect.sync(() => {
          known = { ...known, refused: false }
        }))
    }),
    know: (version) => {
      current = version
    },
    restore: Effect.suspend(() => {
      const held = known
      if (held.token === undefined) return Effect.void
      const sealed = store.seal(place(), held.token)
      current = "?"
      return Effect.ignore(store.run("login", "restore", name(), sealed, String(Math.round(held.since))))
    })
  }
}

const failureText = (exit: Exit.Failure<string, UpstreamFailure>): string => {
  const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
  return failure === undefined ? "" : encodeFailure(failure)
}
