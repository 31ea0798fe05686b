/**
 * The last shared configuration that this node saw, encrypted in a file of its data folder (mode 0600). It survives the
 * loss of the store and of all nodes. Nodes with a common folder share the file.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Encryption } from "../cluster/store/encryption.ts"
import type { StoreShape } from "../cluster/store/Store.ts"
import type { ConfigFile } from "./ConfigFile.ts"

/** The file's name in the data folder. */
export const keptName = "shared-config.sealed"

const place = "gateway:kept-config"

const Header = Schema.fromJsonString(Schema.Struct({
  revision: Schema.Int,
  /** The epoch of the store's data. */
  epoch: Schema.String,
  /** Time of the write by the store's clock; Unix milliseconds. */
  at: Schema.Int
}))

export interface Kept extends Readonly<typeof Header.Type> {
  readonly text: string
}

/** Decrypts a document; `None` if it is malformed or of another key. */
export const openKept = ({ open }: Encryption, sealed: string): Option.Option<Kept> =>
  Option.flatMap(Option.fromUndefinedOr(open(place, sealed.trim())), (opened): Option.Option<Kept> => {
    const end = opened.indexOf("\n")
    return Option.map(
      Schema.decodeOption(Header)(opened.slice(0, end)),
      (header) => ({ ...header, text: opened.slice(end + 1) })
    )
  })

/** Encrypts a document, as a file has it. */
export const sealKept = ({ seal }: Encryption, { text, ...header }: Kept): string =>
  `${seal(place, `${JSON.stringify(header)}\n${text}`)}\n`

export interface KeptDocument {
  readonly path: string
  /** The content of the file. Fails if the file cannot be read or decrypted. */
  readonly read: Effect.Effect<Option.Option<Kept>, { readonly message: string }>
  /** Renames a file that must not be overwritten. */
  readonly setAside: Effect.Effect<void>
  /** Writes the document of a revision. A failed write is retried until it or a later one succeeds. Never fails. */
  readonly keep: (revision: number, text: string) => Effect.Effect<void>
  readonly keepSoon: (revision: number, text: string) => void
  /** Whether the file holds the last document. */
  readonly isKept: () => boolean
}

/** Opens the kept document in `file`. The scope ends its retries. */
export const makeKeptDocument = Effect.fnUntraced(function*(store: StoreShape, file: ConfigFile) {
  const writer = yield* Semaphore.make(1)
  const signals = yield* Queue.sliding<void>(1)
  let waiting: { readonly revision: number; readonly text: string } | undefined
  let written = false

  /** Writes the pending document, unless another node with this folder already has. */
  const write = Effect.suspend(() => {
    if (waiting === undefined) return Effect.void
    const { revision, text } = waiting
    const header = { revision, epoch: store.epoch(), at: Math.floor(Date.now() + store.clockOffset()) }
    const replace = Effect.gen(function*() {
      const there = Option.map(yield* file.read, (content) => content.text.trim())
      const kept = Option.flatMap(there, (sealed) => openKept(store.secrets, sealed))
      const isThere = Option.isSome(kept) && kept.value.epoch === header.epoch && kept.value.revision >= revision &&
        !store.secrets.isOld(place, Option.getOrElse(there, () => ""))
      if (!isThere) yield* file.replace(sealKept(store.secrets, { ...header, text }))
    })
    return Effect.tap(file.exclusively(replace), () =>
      Effect.sync(() => {
        written = true
        if (waiting?.revision === revision) waiting = undefined
      }))
  }).pipe(writer.withPermit)

  const give = (revision: number, text: string) => {
    waiting = { revision, text }
  }

  yield* Stream.fromQueue(signals).pipe(
    Stream.runForEach(() => Effect.ignore(Effect.retry(write, Schedule.spaced("10 seconds")))),
    Effect.forkScoped
  )

  const kept: KeptDocument = {
    path: file.path,
    read: Effect.gen(function*() {
      const content = yield* file.read
      const opened = Option.flatMap(content, ({ text }) => openKept(store.secrets, text))
      if (Option.isSome(content) && Option.isNone(opened)) {
        const message =
          `${file.path} is encrypted with another store key: set GATEWAY_STORE_KEY_PREVIOUS to that key, or remove the file`
        return yield* Effect.fail({ message })
      }
      return opened
    }),
    setAside: Effect.ignore(file.setAside),
    keep: (revision, text) =>
      Effect.suspend(() => {
        give(revision, text)
        return write
      }).pipe(
        Effect.catch((error) => {
          Queue.offerUnsafe(signals, undefined)
          return Effect.logWarning(`The shared configuration cannot be saved on this node: ${error.message}`)
        })
      ),
    keepSoon: (revision, text) => {
      give(revision, text)
      Queue.offerUnsafe(signals, undefined)
    },
    isKept: () => written && waiting === undefined
  }
  return kept
})
