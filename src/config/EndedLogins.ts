/**
 * Logins that were ended before their time, until that time: a file of its own beside the configuration file
 * (`<config>.ended-logins`, mode 0600), so that they stay ended after a restart. Where nothing may be written they are kept
 * in memory, and end with the process at the latest. Nodes of a store keep them there.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type { StoreShape } from "../store/Store.ts"
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
  /** Ends a login, durably where that is possible. */
  readonly end: (login: LoginToken) => Effect.Effect<void>
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
const nothing: typeof Stored.Type = { until: -1, ended: [] }

const make = (stored: typeof Stored.Type, save: (text: () => string) => Effect.Effect<void>): EndedLogins => {
  const writer = Semaphore.makeUnsafe(1)
  let until = stored.until
  /** In the order in which they were ended. */
  const ended = new Map(stored.ended.map(([jti, issuedAt, expiresAt]) => [jti, { jti, issuedAt, expiresAt }]))

  /** Forgets what has expired. Beyond the bound a login is forgotten by ending all that are as old as it. */
  const tidy = (now: number) => {
    if (ended.size > fewKept && ended.size <= mostKept) return
    for (const { expiresAt, jti } of ended.values()) if (expiresAt <= now) ended.delete(jti)
    for (const { issuedAt, jti } of ended.values()) {
      if (ended.size <= mostKept) return
      until = Math.max(until, issuedAt)
      ended.delete(jti)
    }
  }

  return {
    has: ({ issuedAt, jti }) => Effect.sync(() => ended.has(jti) || issuedAt <= until),
    end: (login) =>
      writer.withPermit(Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (ended.has(login.jti)) return Effect.void
        ended.set(login.jti, login)
        tidy(Math.floor(now / 1000))
        return save(() => {
          const kept = Array.from(ended.values(), ({ expiresAt, issuedAt, jti }) => [jti, issuedAt, expiresAt])
          return `${JSON.stringify({ until, ended: kept })}\n`
        })
      }))
  }
}

/** Kept as long as the process runs. */
export const makeEndedLogins: Effect.Effect<EndedLogins> = Effect.sync(() => make(nothing, () => Effect.void))

/**
 * Kept in the store that the nodes share, for as long as the login would have lasted. While the store is lost a node goes by
 * what it has ended itself.
 */
export const makeSharedEndedLogins = (store: Pick<StoreShape, "send">): Effect.Effect<EndedLogins> =>
  Effect.map(makeEndedLogins, (own) => {
    const place = (jti: string) => `gw:{main}:ended:${jti}`
    return {
      has: (login) =>
        Effect.flatMap(own.has(login), (ended) =>
          ended
            ? Effect.succeed(true)
            : store.send("EXISTS", place(login.jti)).pipe(
              Effect.map((reply) => Number(reply) > 0),
              Effect.orElseSucceed(() => false)
            )),
      end: (login) =>
        Effect.gen(function*() {
          yield* own.end(login)
          const left = login.expiresAt * 1000 - (yield* Clock.currentTimeMillis)
          if (left <= 0) return
          yield* Effect.catch(store.send("SET", place(login.jti), "1", "PX", String(Math.ceil(left))), () =>
            Effect.logWarning("The store is lost: a login that was ended is known to this node alone"))
        })
    }
  })

/** Kept beside the configuration file. Never fails. */
export const loadEndedLogins = Effect.fnUntraced(function*(
  configPath: string
): Effect.fn.Return<EndedLogins, never, FileSystem.FileSystem | Path.Path> {
  const path = `${configPath}.ended-logins`
  const file = yield* makeConfigFile(path)
  const read = yield* Effect.orElseSucceed(file.read, () => Option.none())
  const stored = Option.flatMap(read, ({ text }) => decode(text))
  return make(
    Option.getOrElse(stored, () => nothing),
    (text) =>
      Effect.catch(
        file.replace(text()),
        () => Effect.logWarning(`${path} cannot be written: logins that were ended stay so until this process ends`)
      )
  )
})
