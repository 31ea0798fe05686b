/**
 * The configuration file on disk. It is replaced atomically and durably: at any moment it is the whole old file or the
 * whole new one.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import { isUtf8 } from "node:buffer"
import { hash, randomBytes } from "node:crypto"
import { ConfigFileError } from "./ConfigError.ts"
import { withFileLock } from "./fileLock.ts"
import { CurrentFileReader, type UnreadableFile } from "./regularFile.ts"

export interface FileVersion {
  /** SHA-256 of its bytes. */
  readonly digest: string
  /** Modification time, size and inode. Empty if the file does not exist. */
  readonly stamp: string
}

export interface FileContent extends FileVersion {
  readonly text: string
}

export interface ConfigFile {
  readonly path: string
  /** `None` if the file does not exist. */
  readonly read: Effect.Effect<Option.Option<FileContent>, ConfigFileError>
  /**
   * Replaces the file (mode 0600) and returns its new version. After success the change survives a crash of the machine.
   * After a failure or the death of the process the old file remains.
   */
  readonly replace: (text: string) => Effect.Effect<FileVersion, ConfigFileError>
  /**
   * Runs an effect under a lock that excludes other processes, for compare-and-replace. The wait for the lock is bounded; it began
   * at `since` (monotonic milliseconds), or now.
   */
  readonly exclusively: <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    since?: number
  ) => Effect.Effect<A, E | ConfigFileError, R>
  /** Renames the file to `<path>.invalid`. */
  readonly setAside: Effect.Effect<void, ConfigFileError>
  readonly stamp: Effect.Effect<string>
  /** Whether the folder of the file is writable. */
  readonly writable: Effect.Effect<boolean>
  /**
   * Emits on file system events. Events may be missing (network drives, a folder that is created later), so poll `stamp`
   * too.
   */
  readonly events: Stream.Stream<void>
}

/** Age after which a temporary file of a crashed process is removed. */
const leftoverAgeMillis = 60_000

/** The code of the operating system, such as `ENOENT`, else the kind of the failure. */
export const codeOf = (error: PlatformError.PlatformError): string => {
  const cause = error.reason.cause
  return Predicate.hasProperty(cause, "code") ? String(cause.code) : error.reason._tag
}

const unwritable = (path: string) => (error: PlatformError.PlatformError): ConfigFileError => {
  const code = codeOf(error)
  switch (code) {
    case "EBUSY":
    case "EXDEV":
      return new ConfigFileError({
        message: `${path} cannot be replaced because it is mounted as a single file: mount its folder instead, ` +
          "or supply the configuration in GATEWAY_CONFIG_JSON"
      })
    case "EROFS":
    case "EACCES":
    case "EPERM":
      return new ConfigFileError({ message: `${path} cannot be saved: its folder may not be written to (${code})` })
    case "ENOSPC":
    case "EDQUOT":
      return new ConfigFileError({ message: `${path} cannot be saved: no space is left on its disk (${code})` })
    default:
      return new ConfigFileError({ message: `${path} cannot be saved (${code})` })
  }
}

/** The most bytes of a file: more than a change by the admin API can have. */
const longestFile = 256 * 1024 * 1024

/** A pipe yields its text once; a second read would wait for a writer forever. */
const unreadable = ({ kind, message }: UnreadableFile): ConfigFileError =>
  new ConfigFileError({
    message: kind === "irregular"
      ? `${message}: supply the configuration in a file, or in GATEWAY_CONFIG_JSON`
      : message
  })

/** Error codes of file systems that cannot sync a folder. Rename is their best guarantee. */
const unsupportedSync = new Set(["EINVAL", "EISDIR", "ENOTSUP", "EPERM"])

const stampOf = (info: FileSystem.File.Info): string => {
  const time = Option.match(info.mtime, { onNone: () => 0, onSome: (date) => date.getTime() })
  return `${time}:${info.size}:${Option.getOrElse(info.ino, () => 0n)}`
}

/** Opens the configuration file at a path, which need not exist. */
export const makeConfigFile = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const readFile = yield* CurrentFileReader
  const { basename, dirname, join } = yield* Path.Path
  const prefix = `.${basename(path)}.`

  /** Follows a symbolic link, so that the link itself survives a replacement. */
  const target = Effect.orElseSucceed(fs.realPath(path), () => path)

  const syncFolder = (folder: string) =>
    fs.open(folder, { flag: "r" }).pipe(
      Effect.flatMap((handle) => handle.sync),
      Effect.scoped,
      Effect.catch((error) => unsupportedSync.has(codeOf(error)) ? Effect.void : Effect.fail(error))
    )

  const writeDurably = Effect.fnUntraced(function*(file: string, bytes: Uint8Array) {
    const handle = yield* fs.open(file, { flag: "wx", mode: 0o600 })
    yield* handle.writeAll(bytes)
    yield* handle.sync
    // A rename keeps time, size and inode. The stamp is taken here, before anybody can edit the file.
    return stampOf(yield* handle.stat)
  }, Effect.scoped)

  const replace = Effect.fnUntraced(
    function*(text: string) {
      const bytes = Buffer.from(text)
      if (bytes.length > longestFile) {
        return yield* new ConfigFileError({
          message: `${path} cannot be saved: it would be longer than ${longestFile} bytes`
        })
      }
      const file = yield* target
      const folder = dirname(file)
      const temporary = join(folder, `${prefix}${randomBytes(6).toString("hex")}.tmp`)
      yield* fs.makeDirectory(folder, { recursive: true })
      const stamp = yield* writeDurably(temporary, bytes).pipe(
        Effect.tap(() => fs.rename(temporary, file)),
        Effect.onError(() => Effect.ignore(fs.remove(temporary, { force: true })))
      )
      yield* syncFolder(folder)
      return { digest: hash("sha256", bytes), stamp }
    },
    Effect.mapError((error) => error._tag === "PlatformError" ? unwritable(path)(error) : error),
    Effect.uninterruptible
  )

  const removeLeftovers = Effect.gen(function*() {
    const folder = dirname(yield* target)
    const now = yield* Clock.currentTimeMillis
    for (const name of yield* fs.readDirectory(folder)) {
      if (!name.startsWith(prefix) || !name.endsWith(".tmp")) continue
      const info = yield* fs.stat(join(folder, name))
      const modified = Option.match(info.mtime, { onNone: () => now, onSome: (time) => time.getTime() })
      if (now - modified > leftoverAgeMillis) yield* fs.remove(join(folder, name))
    }
  })
  yield* Effect.ignore(removeLeftovers)

  const file: ConfigFile = {
    path,
    read: Effect.gen(function*() {
      const stamp = stampOf(yield* fs.stat(path))
      const bytes = yield* readFile(path, longestFile)
      // Text in another encoding would be decoded to a different password and saved with the next change.
      if (!isUtf8(bytes)) return yield* new ConfigFileError({ message: `${path} is not UTF-8 text: save it as UTF-8` })
      return Option.some({ text: new TextDecoder().decode(bytes), digest: hash("sha256", bytes), stamp })
    }).pipe(
      Effect.catchTags({
        PlatformError: (error) =>
          error.reason._tag === "NotFound"
            ? Effect.succeedNone
            : Effect.fail(new ConfigFileError({ message: `${path} cannot be read (${codeOf(error)})` })),
        UnreadableFile: (error) => error.kind === "missing" ? Effect.succeedNone : Effect.fail(unreadable(error))
      })
    ),
    replace,
    exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>, since?: number) =>
      Effect.gen(function*() {
        const locked = yield* target
        yield* fs.makeDirectory(dirname(locked), { recursive: true })
        return yield* Effect.provideService(
          withFileLock(`${locked}.lock`, Effect.exit(effect), since),
          FileSystem.FileSystem,
          fs
        )
      }).pipe(
        Effect.mapError((error) =>
          error._tag === "Locked"
            ? new ConfigFileError({ message: `${path} cannot be saved: another process holds ${path}.lock` })
            : unwritable(path)(error)
        ),
        Effect.flatten
      ),
    setAside: Effect.flatMap(target, (from) => fs.rename(from, `${path}.invalid`)).pipe(
      Effect.mapError(unwritable(path))
    ),
    stamp: fs.stat(path).pipe(Effect.map(stampOf), Effect.orElseSucceed(() => "")),
    writable: Effect.flatMap(target, (file) => fs.access(dirname(file), { writable: true })).pipe(Effect.isSuccess),
    events: fs.watch(dirname(path)).pipe(
      Stream.filter((event) => basename(event.path) === basename(path)),
      Stream.map(() => undefined),
      Stream.catchCause(() => Stream.empty)
    )
  }
  return file
})
