/**
 * The configuration document of a cluster: in the store with what proves its revision, and the last one that a node saw in a file.
 *
 * The document is encrypted, and its revision is a plain number beside it. A client of the store that can decrypt nothing could give
 * an older document a higher number, and bring deleted keys back to life. So a proof, which is encrypted too, names the revision and
 * the digest of the document, and the number must be the one that the store has counted.
 *
 * The file of a node's data folder (mode 0600) is encrypted too. It survives the loss of the store and of all nodes. Nodes with a common
 * folder share it.
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
import type { StoreUnavailable } from "../cluster/store/StoreShape.ts"
import type { ConfigFile } from "./ConfigFile.ts"
import { sha256Hex } from "./json.ts"

/** The key of the document in the store. */
export const documentPlace = "gw:{main}:config"
const proofPlace = `${documentPlace}:proof`

const statement = (revision: number, sealed: string): string => `${revision} ${sha256Hex(sealed)}`

/** Proves that an encrypted document was written as a revision. */
export const proveDocument = ({ seal }: Pick<Encryption, "seal">, revision: number, sealed: string): string =>
  seal(proofPlace, statement(revision, sealed))

/** A document of the store; `NaN` is a revision that is not a whole number. */
interface Proven {
  readonly revision: number
  readonly sealed: string
  readonly isProven: boolean
}

/** What the store has of the configuration. */
export interface StoredDocument extends Proven {
  /** The revision by the count of the script that saves documents, as the store has it. */
  readonly counted: string
  /** The first document of the store's data. */
  readonly origin: Proven
  /** Whether other nodes are attached. */
  readonly hasOthers: boolean
}

/** The highest revision that may be continued; one beyond it is not a revision. */
const mostRevision = 2 ** 52

const revisionOf = (text: string): number =>
  /^\d{1,16}$/.test(text) && Number(text) <= mostRevision ? Number(text) : NaN

/** Reads the document; only its facts unless `whole`. */
export const readDocument = Effect.fnUntraced(function*(
  store: Pick<StoreShape, "run" | "secrets">,
  whole: "whole" | "facts" = "whole"
): Effect.fn.Return<StoredDocument, StoreUnavailable> {
  const [
    revision = "",
    proof = "",
    counted = "",
    originRevision = "",
    originProof = "",
    sealed = "",
    origin = "",
    others = "0"
  ] = yield* store.run("document", whole)
  const read = (number: string, text: string, proving: string): Proven => {
    const found = number === "" ? 0 : revisionOf(number)
    return {
      revision: found,
      sealed: text,
      isProven: store.secrets.open(proofPlace, proving) === statement(found, text)
    }
  }
  return {
    ...read(revision, sealed, proof),
    counted: counted === "" ? "0" : counted,
    origin: read(originRevision, origin, originProof),
    hasOthers: others !== "0"
  }
})

/** Whether a document is what its revision says. */
export const isGenuine = (found: StoredDocument): boolean =>
  String(found.revision) === found.counted && (found.isProven || found.revision === 0)

/** The revision that follows all those that are known of. */
export const revisionAfter = (...revisions: ReadonlyArray<number>): number =>
  Math.floor(Math.max(0, ...revisions.filter((revision) => revision < mostRevision))) + 1

/** The file's name in the data folder. */
export const keptName = "shared-config.sealed"

const keptPlace = "gateway:kept-config"

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
  Option.flatMap(Option.fromUndefinedOr(open(keptPlace, sealed.trim())), (opened): Option.Option<Kept> => {
    const end = opened.indexOf("\n")
    return Option.map(
      Schema.decodeOption(Header)(opened.slice(0, end)),
      (header) => ({ ...header, text: opened.slice(end + 1) })
    )
  })

/** Encrypts a document, as a file has it. */
export const sealKept = ({ seal }: Encryption, { text, ...header }: Kept): string =>
  `${seal(keptPlace, `${JSON.stringify(header)}\n${text}`)}\n`

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
        !store.secrets.isOld(keptPlace, Option.getOrElse(there, () => ""))
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
