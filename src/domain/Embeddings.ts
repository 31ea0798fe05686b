/**
 * Requests for embeddings and their replies, as all contracts have them.
 */
import type { JsonFields } from "./json.ts"
import type { UsageDetails } from "./units.ts"
import type { FamilyName } from "./VendorFields.ts"

/** The vendor fields of the inputs of a request for embeddings, in their order. */
export interface VendorInputs {
  readonly family: FamilyName
  readonly fields: ReadonlyArray<JsonFields>
  /** The paths of these fields, which other drivers do not send. */
  readonly paths: ReadonlyArray<string>
  /** The fields that say what the vectors are for, which servers with an `input_type` read as that. */
  readonly task?: {
    /** `undefined` if servers have no word for it. */
    readonly inputType: string | undefined
    readonly paths: ReadonlyArray<string>
  }
}

/** What is embedded: texts, or texts as token ids. */
export interface EmbeddingsInput {
  readonly inputs: ReadonlyArray<string | ReadonlyArray<number>>
  /** `undefined` is the default of the model. */
  readonly dimensions: number | undefined
  /** The vendor's own fields of each input, for a driver of the family. */
  readonly own: VendorInputs | undefined
}

/** A vector for each input, in their order. */
export interface EmbeddingsReply {
  readonly vectors: ReadonlyArray<ReadonlyArray<number>>
  /** Tokens of all inputs, if the upstream counts them. */
  readonly tokens: number | undefined
  /** What the bill knows beside them. */
  readonly details?: UsageDetails | undefined
}

/** The dimensions that a caller may request. */
export const dimensionsRange = { minimum: 1, maximum: 4096 }
