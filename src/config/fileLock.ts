/**
 * A lock between processes that replace the same file: a lock file beside it that names its owner.
 *
 * It exists only during a comparison and replacement. A lock of a dead local process is taken over immediately, so that a
 * crash never blocks the next writer. So is a lock that stays empty: a full disk and a crash leave one, in between its creation and
 * the write of its owner.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as PlatformError from "effect/PlatformError"
import { randomBytes } from "node:crypto"
import { hostname } from "node:os"
import { monotonicMillis } from "../domain/time.ts"
import { whileWaiting } from "./clock/waiting.ts"

/** Age of a stale lock, in milliseconds. A live lock lasts for a few disk writes. */
const staleMillis = 10_000

/** Poll interval in milliseconds. */
const pollMillis = 20

/** Polls that find a lock empty before it counts as an orphan. */
const emptyPolls = 10

/** Maximum wait in milliseconds. */
const patienceMillis = 15_000

export interface Locked {
  readonly _tag: "Locked"
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Other errors mean that the process belongs to another user.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH")
  }
}

/**
 * Runs `effect` under the lock at `path`. Fails with `Locked` after the maximum wait, which began at `since` (monotonic
 * milliseconds; now, unless given).
 */
export const withFileLock = Effect.fnUntraced(function*<A, E, R>(
  path: string,
  effect: Effect.Effect<A, E, R>,
  since?: number
) {
  const fs = yield* FileSystem.FileSystem
  const clock = yield* Clock.Clock
  const owner = `${hostname()} ${process.pid} ${randomBytes(6).toString("hex")}`
  const deadline = (since ?? monotonicMillis(clock)) + patienceMillis

  const names = (content: string) =>
    Effect.orElseSucceed(Effect.map(fs.readFileString(path), (held) => held === content), () => false)

  /** Writes the owner into the lock file that was just created. False if another process took it for an orphan. */
  const sign = Effect.fnUntraced(function*(created: FileSystem.File) {
    yield* Effect.tapError(created.writeAll(Buffer.from(owner)), () => Effect.ignore(fs.remove(path)))
    return yield* names(owner)
  })

  /** Creates the lock file; false if it exists. */
  const take = Effect.scoped(Effect.flatMap(fs.open(path, { flag: "wx", mode: 0o600 }), sign)).pipe(
    Effect.catch((error) => error.reason._tag === "AlreadyExists" ? Effect.succeed(false) : Effect.fail(error))
  )

  const age = Effect.gen(function*() {
    const { mtime } = yield* fs.stat(path)
    const now = yield* Clock.currentTimeMillis
    return Option.match(mtime, { onNone: () => 0, onSome: (time) => now - time.getTime() })
  }).pipe(Effect.orElseSucceed(() => 0))

  /** Whether the owner was a process of this machine that has died. */
  const isOrphan = Effect.map(
    Effect.orElseSucceed(fs.readFileString(path), () => ""),
    (held) => {
      const [host, pid] = held.split(" ")
      return host === hostname() && pid !== undefined && /^\d+$/.test(pid) && !isAlive(Number(pid))
    }
  )

  /** Removes a stale lock, unless another process has replaced it in the meantime. */
  const clear = Effect.gen(function*() {
    const stale = yield* fs.readFileString(path)
    const aside = `${path}.${randomBytes(6).toString("hex")}`
    yield* fs.rename(path, aside)
    if ((yield* fs.readFileString(aside)) === stale) yield* fs.remove(aside)
    else yield* fs.rename(aside, path)
  }).pipe(Effect.ignore)

  const acquire: Effect.Effect<void, PlatformError.PlatformError | Locked> = Effect.gen(function*() {
    let empty = 0
    while (!(yield* take)) {
      if (monotonicMillis(clock) > deadline) return yield* Effect.fail<Locked>({ _tag: "Locked" })
      empty = (yield* names("")) ? empty + 1 : 0
      if (empty > emptyPolls || (yield* age) > staleMillis || (yield* isOrphan)) yield* clear
      yield* whileWaiting(Effect.sleep(pollMillis))
    }
  })

  /** Another process may have treated this lock as stale, so remove it only while it names us. */
  const release = Effect.flatMap(names(owner), (isOurs) => isOurs ? Effect.ignore(fs.remove(path)) : Effect.void)

  return yield* Effect.acquireUseRelease(acquire, () => effect, () => release)
})
