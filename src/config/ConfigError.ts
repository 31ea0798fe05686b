/**
 * Errors of the configuration. Messages name places and rules, never a configured value, because it may be a secret.
 */
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { fieldName } from "../domain/GatewayError.ts"

/** A broken rule and its place: `runtime.account_max_inflight`, `accounts[3].email`. */
export const Fault = Schema.Struct({
  /** Dotted path of the field; empty for the whole configuration. */
  field: Schema.String,
  /** A full sentence that names the field. */
  message: Schema.String
})
export type Fault = typeof Fault.Type

/** Maximum number of listed faults. A last sentence mentions that there are more. */
export const maxFaults = 100

const summary = (subject: string, faults: ReadonlyArray<Fault>): string => {
  const sentences = faults.slice(0, maxFaults).map((fault) => fault.message)
  if (faults.length > maxFaults) sentences.push("other fields are wrong too")
  return `${subject}${sentences.join("; ")}`
}

/** The configuration has wrong types, ranges or references. No part of it was applied. */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>()("ConfigInvalid", {
  faults: Schema.Array(Fault),
  /** A sentence for each unknown field of a file: a misspelt name is often the cause of a fault. */
  unknown: Schema.Array(Schema.String),
  message: Schema.String
}) {
  /** `source` names the file or variable of the configuration; absent for a request body. */
  static of(faults: ReadonlyArray<Fault>, source?: string, unknown: ReadonlyArray<string> = []): ConfigInvalid {
    return new ConfigInvalid({
      faults: faults.slice(0, maxFaults),
      unknown,
      message: [summary(source === undefined ? "" : `${source}: `, faults), ...unknown].join("; ")
    })
  }
}

/** A change conflicts with another change of the same fields, or with an invalid edit by hand. Nothing was saved. */
export class ConfigConflict extends Schema.TaggedError<ConfigConflict>()("ConfigConflict", {
  message: Schema.String
}) {}

/** The configuration is locked. The message names where it is changed instead. Nothing was saved. */
export class ConfigLocked extends Schema.TaggedError<ConfigLocked>()("ConfigLocked", {
  message: Schema.String
}) {}

/** The configuration file could not be read or written. The message names the remedy if one is known. */
export class ConfigFileError extends Schema.TaggedError<ConfigFileError>()("ConfigFileError", {
  message: Schema.String
}) {}

/** Makes a fault of a place and the rule that it breaks: `fault("auth", "must be an object")`. */
export const fault = (field: string, rule: string): Fault => ({
  field,
  message: field === "" ? `the configuration ${rule}` : `${field} ${rule}`
})

/** Tells the faults of a body that is one entry of the configuration: each is named by its field in the body. `place` is the entry's. */
export const ofEntry = (place: string) => <E>(error: E): E | ConfigInvalid => {
  if (!(error instanceof ConfigInvalid)) return error
  return ConfigInvalid.of(error.faults.map(({ field, message }) => {
    if (!field.startsWith(`${place}.`) || !message.startsWith(field)) return { field, message }
    const own = field.slice(place.length + 1)
    return { field: own, message: own + message.slice(field.length) }
  }))
}

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => issue._tag === "MissingKey" ? "is required" : SchemaIssue.defaultLeafHook(issue)
})

/** The faults of a failed decoding, below `prefix`. The schemas' messages are rules: "must be a string". */
export const faultsOf = (error: Schema.SchemaError, prefix: ReadonlyArray<PropertyKey>): Array<Fault> =>
  format(error.issue).issues.map(({ message, path }) => {
    const keys = (path ?? []).map((part) => typeof part === "object" ? part.key : part)
    return fault(fieldName([...prefix, ...keys]), message)
  })
