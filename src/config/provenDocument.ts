/**
 * The configuration document of a cluster in the store, and what proves its revision.
 *
 * The document is encrypted, and its revision is a plain number beside it. A client of the store that can decrypt nothing could give
 * an older document a higher number, and bring deleted keys back to life. So a proof, which is encrypted too, names the revision and
 * the digest of the document, and the number must be the one that the store has counted.
 */
import * as Effect from "effect/Effect"
import type { Encryption } from "../cluster/store/encryption.ts"
import type { StoreShape } from "../cluster/store/Store.ts"
import type { StoreUnavailable } from "../cluster/store/StoreShape.ts"
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
