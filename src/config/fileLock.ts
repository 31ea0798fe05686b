/**
 * A lock on a file that several processes may replace: a file beside it that names its owner, there as long as one of them
 * compares and replaces.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as PlatformError from "effect/PlatformError"
import { randomBytes } from "node:crypto"
import { hostname } from "node:os"

/** It is held for the time of a few disk writes; one that is older than this was left behind by a process that died. */
const staleMillis = 10_000

/** Milliseconds between two looks at a lock that somebody else has. */
const pollMillis = 20

/** How long a lock is waited for, in milliseconds. */
const patienceMillis = 15_000

/** The lock was not to be had in time. */
export interface Locked {
  readonly _tag: "Locked"
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Anything but that it is not there: it is somebody else's.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH")
  }
}

/** Runs `effect` while no other process runs one under the lock at `path`. */
export const withFileLock = Effect.fnUntraced(function*<A, E, R>(path: string, effect: Effect.Effect<A, E, R>) {
  const fs = yield* FileSystem.FileSystem
  const owner = `${hostname()} ${process.pid} ${randomBytes(6).toString("hex")}`

  /** Takes the lock; false where somebody has it. */
  const take = fs.writeFileString(path, owner, { flag: "wx", mode: 0o600 }).pipe(
    Effect.as(true),
    Effect.catch((error) => error.reason._tag === "AlreadyExists" ? Effect.succeed(false) : Effect.fail(error))
  )

  const age = Effect.gen(function*() {
    const { mtime } = yield* fs.stat(path)
    const now = yield* Clock.currentTimeMillis
    return Option.match(mtime, { onNone: () => 0, onSome: (time) => now - time.getTime() })
  }).pipe(Effect.orElseSucceed(() => 0))

  /** Whether its owner was a process of this machine that is no more. */
  const isOrphan = Effect.map(
    Effect.orElseSucceed(fs.readFileString(path), () => ""),
    (held) => {
      const [host, pid] = held.split(" ")
      return host === hostname() && pid !== undefined && /^\d+$/.test(pid) && !isAlive(Number(pid))
    }
  )

  /** Puts a lock aside whose owner is gone, unless another has taken it over in between. */
  const clear = Effect.gen(function*() {
    const stale = yield* fs.readFileString(path)
    const aside = `${path}.${randomBytes(6).toString("hex")}`
    yield* fs.rename(path, aside)
    if ((yield* fs.readFileString(aside)) === stale) yield* fs.remove(aside)
    else yield* fs.rename(aside, path)
  }).pipe(Effect.ignore)

  const acquire: Effect.Effect<void, PlatformError.PlatformError | Locked> = Effect.gen(function*() {
    const since = yield* Clock.currentTimeMillis
    while (!(yield* take)) {
      if ((yield* age) > staleMillis || (yield* isOrphan)) yield* clear
      else if ((yield* Clock.currentTimeMillis) - since > patienceMillis) {
        return yield* Effect.fail<Locked>({ _tag: "Locked" })
      } else yield* Effect.sleep(pollMillis)
    }
  })

  /** Another process may have taken the lock for a stale one: it is only ours while it names us. */
  const release = Effect.ignore(Effect.flatMap(
    fs.readFileString(path),
    (held) => held === owner ? fs.remove(path) : Effect.void
  ))

  return yield* Effect.acquireUseRelease(acquire, () => effect, () => release)
})
