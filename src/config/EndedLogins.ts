/**
 * Logins that were ended before their time, until that time: a file of its own beside the configuration file
 * (`<config>.ended-logins`, mode 0600), so that they stay ended after a restart. Processes of one file see what the others
 * have ended. Where nothing may be written they are kept in memory, and written as soon as that is possible. Nodes of a store
 * keep them there, and each of them itself.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { makeMarks } from "../cluster/store/marks.ts"
import type { StoreShape } from "../cluster/store/Store.ts"
import { keepTrying } from "./clock/keepTrying.ts"
import { makeConfigFile } from "./ConfigFile.ts"

/** A login by what its token says of it; times in Unix seconds. */
export interface LoginToken {
  readonly jti: string
  readonly issuedAt: number
  readonly expiresAt: number
}

export interface EndedLogins {
  /** Whether a login has ended. */
  readonly has: (login: LoginToken) => Effect.Effect<boolean>
  /**
   * Ends a login at once. False where that is not kept yet, and would not outlive the process: it is tried again until it
   * is.
   */
  readonly end: (login: LoginToken) => Effect.Effect<boolean>
}

/** Logins that are remembered one by one. */
const mostKept = 10_000
/** With more than these it is looked for expired ones only where there is no room. */
const fewKept = 1_000

const Stored = Schema.Struct({
  /** Every login that was issued until then has ended; Unix seconds. */
  until: Schema.Int,
  /** Id, issued at, expires at. */
  ended: Schema.Array(Schema.Tuple([Schema.String, Schema.Int, Schema.Int]))
})

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Stored))

const inSeconds = Effect.map(Clock.currentTimeMillis, (now) => Math.floor(now / 1000))

/** What a process knows of ended logins: `mostKept` of them. Times in Unix seconds. */
class Known {
  /** Every login that was issued until then has ended. */
  until = -1
  /** In the order in which they were ended. */
  readonly #ended = new Map<string, LoginToken>()

  has({ issuedAt, jti }: LoginToken): boolean {
    return this.#ended.has(jti) || issuedAt <= this.until
  }

  /** Those that have not expired, in the order in which they were ended. */
  all(now: number): ReadonlyArray<LoginToken> {
    return [...this.#ended.values()].filter(({ expiresAt }) => expiresAt > now)
  }

  /** Forgets what has expired. Beyond the bound a login is forgotten by ending all that are as old as it. */
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

/** Kept as long as the process runs. */
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

/** The name by which nodes tell one another of a login. */
const nameOf = ({ issuedAt, jti }: LoginToken): string => `${jti} ${issuedAt}`

/**
 * Kept in the store that the nodes share, for as long as the login would have lasted, and by every node: neither a store that
 * has lost its data nor one that does not answer makes a login live again.
 */
export const makeSharedEndedLogins = Effect.fnUntraced(function*(
  store: Pick<StoreShape, "run" | "send" | "listen" | "clockOffset">
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
    Effect.logWarning("The store is lost: logins that were ended are written there as soon as it is back")
  )
  return {
    has: (login) =>
      Effect.suspend(() =>
        known.has(login) ? Effect.succeed(true) : Effect.orElseSucceed(marks.find(nameOf(login)), () => false)
      ),
    end: (login) => marks.mark([nameOf(login), login.expiresAt * 1000])
  }
})

/** Kept beside the configuration file. Never fails. */
export const loadEndedLogins = Effect.fnUntraced(function*(
  configPath: string
): Effect.fn.Return<EndedLogins, never, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const path = `${configPath}.ended-logins`
  const file = yield* makeConfigFile(path)
  const known = new Known()
  /** The file's stamp when it was last read or written. */
  let stamp = ""

  /** Takes what the file has; false where it does not have all that is known here. */
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
      // What cannot be read may have ended any login: all of them have.
      known.until = Math.max(known.until, now)
      yield* Effect.logWarning(`${path} is damaged: every login of before has ended`)
    }
    return Option.isNone(content) && known.until === -1 && known.all(now).length === 0
  })

  const save = file.exclusively(Effect.gen(function*() {
    if (yield* read) return
    const ended = known.all(yield* inSeconds).map(({ expiresAt, issuedAt, jti }) => [jti, issuedAt, expiresAt])
    stamp = (yield* file.replace(`${JSON.stringify({ until: known.until, ended })}\n`)).stamp
  }))
  const saved = yield* keepTrying(
    save,
    ({ message }) =>
      Effect.logWarning(`${message}; logins that were ended are written there as soon as that is possible`)
  )

  /** Sees what another process has ended. */
  const look = Effect.gen(function*() {
    if ((yield* file.stamp) === stamp || (yield* read)) return
    yield* saved
  })

  yield* Effect.catch(look, ({ message }) =>
    Effect.gen(function*() {
      known.until = yield* inSeconds
      yield* Effect.logWarning(`${message}; every login of before has ended`)
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
