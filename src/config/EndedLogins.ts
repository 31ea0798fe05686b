/**
 * Logins that ended before they expired, kept until their expiry in a file beside the configuration file
 * (`<config>.ended-logins`, mode 0600), so that they stay ended after a restart. Processes with the same file see each
 * other's entries. If the file is not writable they stay in memory and writing is retried. Nodes of a cluster keep them in
 * the store and each in its memory.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { StoreShape } from "../cluster/store/Store.ts"
import { retryUntilDone } from "./clock/retry.ts"
import { makeConfigFile } from "./ConfigFile.ts"
import { makeMarks } from "./marks.ts"

/** The claims of a login token; times in Unix seconds. */
export interface LoginToken {
  readonly jti: string
  readonly issuedAt: number
  readonly expiresAt: number
}

export interface EndedLogins {
  /** Whether a login has ended. */
  readonly has: (login: LoginToken) => Effect.Effect<boolean>
  /** Ends a login immediately. Returns false while this is not saved; saving is retried until it succeeds. */
  readonly end: (login: LoginToken) => Effect.Effect<boolean>
}

/** Maximum number of individually remembered logins. */
const mostKept = 10_000
/** Above this size, expired logins are removed only when the maximum is reached. */
const fewKept = 1_000

const Stored = Schema.Struct({
  /** All logins issued up to this time have ended; Unix seconds. */
  until: Schema.Int,
  /** Id, issued at, expires at. */
  ended: Schema.Array(Schema.Tuple([Schema.String, Schema.Int, Schema.Int]))
})

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Stored))

const inSeconds = Effect.map(Clock.currentTimeMillis, (now) => Math.floor(now / 1000))

/** The ended logins that a process knows, at most `mostKept`. Times in Unix seconds. */
class Known {
  /** All logins issued up to this time have ended. */
  until = -1
  readonly #ended = new Map<string, LoginToken>()

  has({ issuedAt, jti }: LoginToken): boolean {
    return this.#ended.has(jti) || issuedAt <= this.until
  }

  all(now: number): ReadonlyArray<LoginToken> {
    return [...this.#ended.values()].filter(({ expiresAt }) => expiresAt > now)
  }

  /**
   * Adds a login and removes expired ones. At the maximum, the oldest entry is replaced by ending all logins up to its
   * age.
   */
  add(login: LoginToken, now: number): void {
    if (this.#ended.has(login.jti) || login.expiresAt <= now) return
    this.#ended.set(login.jti, login)
    const { size } = this.#ended
    if (size > fewKept && size <= mostKept) return
    for (const { expiresAt, jti } of this.#ended.values()) if (expiresAt <= now) this.#ended.delete(jti)
    for (const { issuedAt, jti } of this.#ended.values()) {
      if (this.#ended.size <= mostKept) return
      this.until = Math.max(this.until, issuedAt)
      this.#ended.delete(jti)
    }
  }
}

export const makeEndedLogins: Effect.Effect<EndedLogins> = Effect.sync(() => {
  const known = new Known()
  return {
    has: (login) => Effect.sync(() => known.has(login)),
    end: (login) =>
      Effect.map(inSeconds, (now) => {
        known.add(login, now)
        return true
      })
  }
})

/** The name of a login in messages between nodes. */
const nameOf = ({ issuedAt, jti }: LoginToken): string => `${jti} ${issuedAt}`

/**
 * Ended logins in the shared store until their expiry, and in the memory of every node: a login stays ended when the store
 * loses its data or does not answer.
 */
export const makeSharedEndedLogins = Effect.fnUntraced(function*(
  store: Pick<StoreShape, "run" | "send" | "listen" | "membership" | "clockOffset">
): Effect.fn.Return<EndedLogins, never, Scope.Scope> {
  const known = new Known()
  const marks = yield* makeMarks(
    store,
    "ended-logins",
    {
      known: (now) => known.all(now / 1000).map((login) => [nameOf(login), login.expiresAt * 1000] as const),
      take: ([name, until], now) => {
        const [jti = "", issuedAt = ""] = name.split(" ")
        known.add({ jti, issuedAt: Number(issuedAt), expiresAt: until / 1000 }, now / 1000)
      }
    },
    Effect.logWarning("The store is lost: ended logins are written to it when it is back")
  )
  return {
    has: (login) =>
      Effect.suspend(() =>
        known.has(login) ? Effect.succeed(true) : Effect.orElseSucceed(marks.find(nameOf(login)), () => false)
      ),
    end: (login) => marks.mark([nameOf(login), login.expiresAt * 1000])
  }
})

/** Ended logins in a file beside the configuration file. Never fails. */
export const loadEndedLogins = Effect.fnUntraced(function*(
  configPath: string
): Effect.fn.Return<EndedLogins, never, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const path = `${configPath}.ended-logins`
  const file = yield* makeConfigFile(path)
  const known = new Known()
  /** The stamp of the file at the last read or write. */
  let stamp = ""

  /** Reads the file. Returns false if it lacks a login that is known here. */
  const read = Effect.gen(function*() {
    const content = yield* file.read
    const now = yield* inSeconds
    stamp = Option.match(content, { onNone: () => "", onSome: (found) => found.stamp })
    const stored = Option.flatMap(content, ({ text }) => decode(text))
    const there = new Set<string>()
    if (Option.isSome(stored)) {
      const { ended, until } = stored.value
      for (const [jti, issuedAt, expiresAt] of ended) {
        there.add(jti)
        known.add({ jti, issuedAt, expiresAt }, now)
      }
      if (until >= known.until) {
        known.until = until
        return known.all(now).every(({ jti }) => there.has(jti))
      }
    } else if (Option.isSome(content)) {
      // A damaged file may have ended any login, so all of them end.
      known.until = Math.max(known.until, now)
      yield* Effect.logWarning(`${path} is damaged: all earlier logins have ended`)
    }
    return Option.isNone(content) && known.until === -1 && known.all(now).length === 0
  })

  const save = file.exclusively(Effect.gen(function*() {
    if (yield* read) return
    const ended = known.all(yield* inSeconds).map(({ expiresAt, issuedAt, jti }) => [jti, issuedAt, expiresAt])
    stamp = (yield* file.replace(`${JSON.stringify({ until: known.until, ended })}\n`)).stamp
  }))
  const saved = yield* retryUntilDone(
    save,
    ({ message }) => Effect.logWarning(`${message}; writing the ended logins is retried`)
  )

  /** Reads the entries of other processes. */
  const look = Effect.gen(function*() {
    if ((yield* file.stamp) === stamp || (yield* read)) return
    yield* saved
  })

  yield* Effect.catch(look, ({ message }) =>
    Effect.gen(function*() {
      known.until = yield* inSeconds
      yield* Effect.logWarning(`${message}; all earlier logins have ended`)
    }))

  return {
    has: (login) => Effect.map(Effect.ignore(look), () => known.has(login)),
    end: (login) =>
      Effect.gen(function*() {
        known.add(login, yield* inSeconds)
        return yield* saved
      })
  }
})
