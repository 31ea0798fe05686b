/**
 * Storage for the configuration while the gateway runs: its file, or memory.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { StoreUnavailable } from "../cluster/store/StoreShape.ts"
import type { ConfigFileError } from "./ConfigError.ts"
import type { ConfigFile, FileContent, FileVersion } from "./ConfigFile.ts"
import type { Snapshot } from "./GatewayConfig.ts"
import { stringifyConfig } from "./json.ts"

/** Another process saved a change first; read it from `edited`. */
export interface Superseded {
  readonly _tag: "Superseded"
}

/** Stores one configuration. Only one fiber at a time may use it, except for `edits` and `writable`. */
export interface Backing {
  /** The name of the place, for log lines and errors. */
  readonly place: string
  /** The stored content, if it differs from what was last read or saved. */
  readonly edited: Effect.Effect<Option.Option<FileContent>, ConfigFileError | StoreUnavailable>
  /** Confirms that an edit was applied. The next save replaces this content. */
  readonly adopted: (edit: FileContent, next: Snapshot) => void
  /** Reports that an edit is invalid. */
  readonly refused: () => void
  /** Saves the successor of `before`, atomically and durably. The change waits since `since` (monotonic milliseconds). */
  readonly save: (
    next: Snapshot,
    before: Snapshot,
    since?: number
  ) => Effect.Effect<void, ConfigFileError | StoreUnavailable | Superseded>
  readonly writable: Effect.Effect<boolean>
  /** Emits when there may be an edit. */
  readonly edits: Stream.Stream<void>
}

/** The backing of a file, which needs no snapshot of an edit. */
interface FileBacking extends Backing {
  readonly adopted: (edit: FileContent) => void
}

/** Keeps changes in memory, for the life of the process. */
export const memoryBacking: Backing = {
  place: "the configuration",
  edited: Effect.succeedNone,
  adopted: () => undefined,
  refused: () => undefined,
  save: () => Effect.void,
  writable: Effect.succeed(false),
  edits: Stream.empty
}

/** Poll interval, for file systems without events. */
const pollInterval = "1 second"

/** The file must be unchanged for this long before it is read, so that no half-written edit is read. */
const settleTime = "100 millis"

/** Keeps the configuration in `file`. `loaded` is the version that the gateway started with, if the file existed. */
export const fileBacking = Effect.fnUntraced(function*(
  file: ConfigFile,
  loaded: Option.Option<FileVersion>
): Effect.fn.Return<FileBacking> {
  /** Digest of the content that the configuration in effect was read from or saved as. */
  let digest = Option.map(loaded, (version) => version.digest)
  /** Stamp of the file at the last read, whether or not its content was valid. */
  let stamp = Option.match(loaded, { onNone: () => "", onSome: (version) => version.stamp })
  let writable = yield* file.writable

  /** Waits until a changed file is stable. Returns false if the file is unchanged. */
  const settled = Effect.gen(function*() {
    let seen = yield* file.stamp
    if (seen === stamp) return false
    for (;;) {
      yield* Effect.sleep(settleTime)
      const next = yield* file.stamp
      if (next === seen) return true
      seen = next
    }
  })

  return {
    place: file.path,
    refused: () => undefined,
    edited: Effect.gen(function*() {
      const content = yield* file.read
      stamp = Option.match(content, { onNone: () => "", onSome: (found) => found.stamp })
      return Option.filter(content, (found) => Option.isNone(digest) || digest.value !== found.digest)
    }),
    adopted: (edit) => {
      digest = Option.some(edit.digest)
    },
    save: Effect.fnUntraced(function*({ raw }, _before, since) {
      const text = yield* stringifyConfig(raw, "indented")
      // The lock excludes other processes from the comparison to the replacement, so a change that one of them saved is
      // found first.
      const replacing = Effect.flatMap(file.read, (there): Effect.Effect<FileVersion, ConfigFileError | Superseded> => {
        const isOurs = Option.match(there, {
          onNone: () => true,
          onSome: (found) => Option.isSome(digest) && digest.value === found.digest
        })
        return isOurs ? file.replace(text) : Effect.fail({ _tag: "Superseded" })
      })
      const saved = yield* Effect.tapError(file.exclusively(replacing, since), (error) =>
        Effect.sync(() => {
          if (error._tag !== "Superseded") writable = false
        }))
      writable = true
      digest = Option.some(saved.digest)
      stamp = saved.stamp
    }),
    writable: Effect.sync(() => writable),
    edits: Stream.merge(file.events, Stream.tick(pollInterval)).pipe(
      Stream.filterEffect(() => settled),
      Stream.map(() => undefined)
    )
  }
})
