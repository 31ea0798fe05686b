/** Where the token of an account comes from, as configured beside `token`: checked, and with the values of its references. */
import * as Redacted from "effect/Redacted"
import { type Fault, fault } from "./ConfigError.ts"
import type { CredentialEntry } from "./document.ts"
import { sha256Hex } from "./json.ts"
import { hidden, secretAt, type Variables } from "./references.ts"

/** The source of an account's token, as configured. */
export interface CredentialSettings {
  readonly from: typeof CredentialEntry.Type["from"]
  /** With the values of its references; never printed. */
  readonly entry: Redacted.Redacted<typeof CredentialEntry.Type>
  /** Equal for equal contents. */
  readonly id: string
}

/** The fields that a credential stands in place of. */
const replaced = ["email", "mobile", "password", "token"] as const

/** Reads the credential of an account at a place of the file; `undefined` without one. */
export const toCredential = (
  account: { readonly credential?: typeof CredentialEntry.Type } & Partial<Record<typeof replaced[number], string>>,
  place: string,
  variables: Variables,
  faults: Array<Fault>
): CredentialSettings | undefined => {
  const { credential } = account
  if (credential === undefined) return undefined
  for (const name of replaced) {
    if ((account[name] ?? "") !== "") faults.push(fault(`${place}.${name}`, "must be unset beside a credential"))
  }
  const valueAt = (text: string, at: string): string => {
    if (text === hidden) faults.push(fault(at, "must be written with its secret"))
    return Redacted.value(secretAt(text, at, variables, faults))
  }
  const resolved = Object.fromEntries(
    Object.entries(credential).map(([name, value]: [string, unknown]) => {
      const at = `${place}.credential.${name}`
      if (Array.isArray(value)) return [name, value.map((item: string, index) => valueAt(item, `${at}[${index}]`))]
      return [name, typeof value === "string" ? valueAt(value, at) : value]
    })
  ) as typeof CredentialEntry.Type
  return {
    from: resolved.from,
    entry: Redacted.make(resolved),
    id: sha256Hex(JSON.stringify(Object.entries(resolved).sort(([a], [b]) => a < b ? -1 : 1)))
  }
}

/** The secrets of a credential that servers get. */
export const secretsOfCredential = (credential: CredentialSettings | undefined): ReadonlyArray<string> => {
  if (credential === undefined) return []
  const entry = Redacted.value(credential.entry)
  return "secret" in entry && typeof entry.secret === "string" ? [entry.secret] : []
}

/** Whether two accounts have the same credential, or none. */
export const isSameCredential = (one: CredentialSettings | undefined, other: CredentialSettings | undefined): boolean =>
  one?.id === other?.id
