/** A disk in memory, whose operations take no time. It can be full: files are created, and writing to them fails. */
import * as ByteSize from "effect/ByteSize"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as PlatformError from "effect/PlatformError"
import * as Stream from "effect/Stream"
import { CurrentFileReader, UnreadableFile } from "../../src/config/regularFile.ts"

const failed = (tag: "AlreadyExists" | "NotFound" | "Unknown", code: string) =>
  PlatformError.systemError({
    _tag: tag,
    module: "FileSystem",
    method: "a method of the test",
    cause: Object.assign(new Error(code), { code })
  })

/**
 * Makes a disk. `files` has its files by their paths, whose modification time is now or, for those in `fresh`, in the future. Those
 * in `stuck` cannot be renamed.
 */
export const makeMemoryDisk = (files: Record<string, string> = {}) => {
  const disk = {
    files: new Map(Object.entries(files)),
    fresh: new Set<string>(),
    stuck: new Set<string>(),
    isFull: false
  }
  const full = failed("Unknown", "ENOSPC")
  let written = 0
  const numbers = new Map<string, number>()

  const found = (path: string) =>
    Effect.suspend(() => {
      const text = disk.files.get(path)
      return text === undefined ? Effect.fail(failed("NotFound", "ENOENT")) : Effect.succeed(text)
    })
  const put = (path: string, text: string) => {
    disk.files.set(path, text)
    numbers.set(path, ++written)
  }
  const write = (path: string, text: string) =>
    Effect.suspend(() => disk.isFull ? Effect.fail(full) : Effect.sync(() => put(path, text)))
  const create = (path: string) =>
    Effect.suspend(() =>
      disk.files.has(path) ? Effect.fail(failed("AlreadyExists", "EEXIST")) : Effect.sync(() => put(path, ""))
    )

  const stat = (path: string) =>
    Effect.flatMap(found(path), (text) =>
      Effect.map(Clock.currentTimeMillis, (now): FileSystem.File.Info => ({
        type: "File",
        ino: Option.some(BigInt(numbers.get(path) ?? 0)),
        size: ByteSize.bytes(text.length),
        mtime: Option.some(new Date(disk.fresh.has(path) ? now + 60_000 : now)),
        atime: Option.none(),
        birthtime: Option.none(),
        dev: 1n,
        mode: 0o600,
        nlink: Option.none(),
        uid: Option.none(),
        gid: Option.none(),
        rdev: Option.none(),
        blksize: Option.none(),
        blocks: Option.none()
      })))
  const unused = Effect.die("The disk of the test does not have this")

  const layer = FileSystem.layerNoop({
    access: () => Effect.void,
    exists: (path) => Effect.sync(() => disk.files.has(path)),
    makeDirectory: () => Effect.void,
    open: (path, options) =>
      Effect.as(options?.flag === "wx" ? create(path) : Effect.void, {
        [FileSystem.FileTypeId]: FileSystem.FileTypeId,
        sync: Effect.void,
        stat: stat(path),
        writeAll: (bytes) => write(path, Buffer.from(bytes).toString()),
        seek: () => unused,
        read: () => unused,
        readAlloc: () => unused,
        truncate: () => unused,
        write: () => unused
      }),
    readDirectory: () => Effect.sync(() => [...disk.files.keys()].map((path) => path.slice(path.lastIndexOf("/") + 1))),
    readFile: (path) => Effect.map(found(path), (text) => Buffer.from(text)),
    readFileString: found,
    realPath: (path) => Effect.as(found(path), path),
    remove: (path) =>
      Effect.sync(() => {
        disk.files.delete(path)
      }),
    rename: (from, to) =>
      Effect.flatMap(
        found(from),
        (text) =>
          disk.stuck.has(from) ? Effect.fail(failed("Unknown", "EACCES")) : Effect.sync(() => {
            disk.files.delete(from)
            put(to, text)
          })
      ),
    stat,
    watch: () => Stream.empty,
    writeFileString: (path, text) => Effect.andThen(create(path), write(path, text))
  })
  const reader = Layer.succeed(CurrentFileReader, (path) =>
    Effect.mapBoth(found(path), {
      onFailure: () => new UnreadableFile({ kind: "missing", message: `${path}: there is no such file` }),
      onSuccess: (text) => Buffer.from(text)
    }))
  return { disk, layer: Layer.merge(layer, reader) }
}
