/**
 * Where a configuration is kept while the gateway runs: in its file, or in memory only.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { StoreUnavailable } from "../cluster/store/StoreError.ts"
import type { ConfigFileError } from "./ConfigError.ts"
import type { ConfigFile, FileContent, FileVersion } from "./ConfigFile.ts"
import type { Snapshot } from "./GatewayConfig.ts"
import { stringifyConfig } from "./json.ts"

/** Somebody else saved meanwhile: `edited` has what. */
export interface Superseded {
  readonly _tag: "Superseded"
}

/** Keeps one configuration. Only one fiber at a time may use it, but for `edits` and `writable`. */
export interface Backing {
  /** Where it is kept, for log lines and errors. */
  readonly place: string
  /** What is there now, when it is not what was last read or saved. */
  readonly edited: Effect.Effect<Option.Option<FileContent>, ConfigFileError | StoreUnavailable>
  /** Says that an edit was taken over, and as what: it is what the next save replaces. */
  readonly adopted: (edit: FileContent, next: Snapshot) => void
  /** Says that an edit cannot be taken over. */
  readonly refused: () => void
  /** Saves atomically and durably what is to follow `before`. */
  readonly save: (
    next: Snapshot,
    before: Snapshot
  ) => Effect.Effect<void, ConfigFileError | StoreUnavailable | Superseded>
  /** Whether what is saved outlives the process. */
  readonly writable: Effect.Effect<boolean>
  /** Emits when there may be an edit to look at. */
  readonly edits: Stream.Stream<void>
}

/** A file that is edited by hand, whatever its edits become. */
interface FileBacking extends Backing {
  readonly adopted: (edit: FileContent) => void
}

/** Keeps nothing: changes live as long as the process. */
export const memoryBacking: Backing = {
  place: "the configuration",
  edited: Effect.succeedNone,
  adopted: () => undefined,
  refused: () => undefined,
  save: () => Effect.void,
  writable: Effect.succeed(false),
  edits: Stream.empty
}

/** How often the file is looked at where its events are not seen. */
const pollInterval = "1 second"

/** How long a file must stand still before it is read, so that no half-written edit is. */
const settleTime = "100 millis"

/** Keeps the configuration in `file`; `loaded` is the version that was loaded, if there was a file. */
export const fileBacking = Effect.fnUntraced(function*(
  file: ConfigFile,
  loaded: Option.Option<FileVersion>
): Effect.fn.Return<FileBacking> {
  /** Digest of what the configuration in effect was read from or saved as. */
  let digest = Option.map(loaded, (version) => version.digest)
  /** Stamp of the file when it was last looked at, whatever was found. */
  let stamp = Option.match(loaded, { onNone: () => "", onSome: (version) => version.stamp })
  let writable = yield* file.writable

  /** Waits until the file is another than the one that was seen last, and stands still. */
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
    save: Effect.fnUntraced(function*({ raw }) {
      const text = yield* stringifyConfig(raw, "indented")
      // Nobody saves between the comparison and the replacement: what another process has saved since is met first.
      const replacing = Effect.flatMap(file.read, (there): Effect.Effect<FileVersion, ConfigFileError | Superseded> => {
        const isOurs = Option.match(there, {
          onNone: () => true,
          onSome: (found) => Option.isSome(digest) && digest.value === found.digest
        })
        return isOurs ? file.replace(text) : Effect.fail({ _tag: "Superseded" })
      })
      const saved = yield* Effect.tapError(file.exclusively(replacing), (error) =>
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
