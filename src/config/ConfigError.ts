/**
 * What can be wrong with a configuration or with saving it. No message ever holds a configured value, since it may be a
 * secret: only places and rules.
 */
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { fieldName } from "../domain/GatewayError.ts"

/** One thing that is wrong, and where: `runtime.account_max_inflight`, `accounts[3].email`. */
export const Fault = Schema.Struct({
  /** Dotted place of the field; empty for the configuration as a whole. */
  field: Schema.String,
  /** The whole sentence, which names the field. */
  message: Schema.String
})
export type Fault = typeof Fault.Type

/** Faults that are listed at most; what lies beyond is summed up in a last one. */
export const maxFaults = 100

const summary = (subject: string, faults: ReadonlyArray<Fault>): string => {
  const sentences = faults.slice(0, maxFaults).map((fault) => fault.message)
  if (faults.length > maxFaults) sentences.push("further fields are wrong too")
  return `${subject}${sentences.join("; ")}`
}

/** A configuration with wrong types, ranges or references. It was not applied, in no part. */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>()("ConfigInvalid", {
  faults: Schema.Array(Fault),
  message: Schema.String
}) {
  /** `source` names the file or variable it came from, where it is not the caller's own request. */
  static of(faults: ReadonlyArray<Fault>, source?: string): ConfigInvalid {
    return new ConfigInvalid({
      faults: faults.slice(0, maxFaults),
      message: summary(source === undefined ? "" : `${source}: `, faults)
    })
  }
}

/** A change that met another change of the same fields, or an edit by hand that is not valid. Nothing was saved. */
export class ConfigConflict extends Schema.TaggedError<ConfigConflict>()("ConfigConflict", {
  message: Schema.String
}) {}

/** The configuration could not be read from or written to its file. The message names the remedy where there is one. */
export class ConfigFileError extends Schema.TaggedError<ConfigFileError>()("ConfigFileError", {
  message: Schema.String
}) {}

/** A fault from a place and the rule that it breaks: `fault("auth", "must be an object")`. */
export const fault = (field: string, rule: string): Fault => ({
  field,
  message: field === "" ? `the configuration ${rule}` : `${field} ${rule}`
})

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => issue._tag === "MissingKey" ? "is required" : SchemaIssue.defaultLeafHook(issue)
})

/** The faults of a failed decoding, below `prefix`. The schemas' messages are rules such as "must be a string". */
export const faultsOf = (error: Schema.SchemaError, prefix: ReadonlyArray<PropertyKey>): Array<Fault> =>
  format(error.issue).issues.map(({ message, path }) => {
    const keys = (path ?? []).map((part) => typeof part === "object" ? part.key : part)
    return fault(fieldName([...prefix, ...keys]), message)
  })
