/**
 * References to variables of the environment and to files within configured secrets: `${NAME}` is the variable's value, `$${` is `${`. The
 * configuration keeps the text as written; only its use has the value. `referenceNames.ts` says which variables may be named.
 */
import * as Context from "effect/Context"
import * as Redacted from "effect/Redacted"
import { shortenName } from "../domain/GatewayError.ts"
import { type Fault, fault } from "./ConfigError.ts"
import { isProxySetting } from "./proxies.ts"
import { allowsReference, isOwnVariable, referencesVariable } from "./referenceNames.ts"

/** Begins a reference to a file (`secretFiles.ts`). */
export const filePrefix = "file:"

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

const reference = /\$\$\{|\$\{([^}]*)\}/g

/** A text with the values of its references, or the name of a variable that is unset or malformed, or that no reference may name. */
export type Referenced = { readonly value: string } | { readonly missing: string } | { readonly refused: string }

/** Looks a variable up; `undefined` if it is unset, `null` if no reference may name it. */
export type Variables = (name: string) => string | null | undefined

/** A variable of the process. A blank one counts as unset. */
const ofProcess = (name: string): string | undefined => process.env[name]?.trim() === "" ? undefined : process.env[name]

/** The environment that `${NAME}` refers to: by default that of the process, as far as `GATEWAY_REFERENCES` allows. */
export const CurrentVariables = Context.Reference<Variables>("model-gateway/config/Variables", {
  defaultValue: () => (name) => allowsReference(ofProcess(referencesVariable) ?? "", name) ? ofProcess(name) : null
})

/** Replaces the references in a text. A value is inserted as it is: references within it have no meaning. */
export const resolveReferences = (text: string, variables: Variables): Referenced => {
  let fault: Referenced | undefined
  const value = text.replace(reference, (found, name: string | undefined) => {
    if (name === undefined) return "${"
    const isName = variableName.test(name) || name.startsWith(filePrefix)
    const known = !isName ? undefined : isOwnVariable(name) ? null : variables(name)
    if (typeof known === "string") return known
    fault ??= known === undefined ? { missing: name } : { refused: name }
    return found
  })
  return fault ?? { value }
}

/** True for a text with references, whose value depends on the environment. */
export const hasReferences = (text: string | undefined): boolean => text?.includes("${") === true

/** The value behind the references of a secret; reports a variable that is unset, or that no reference may name. */
export const secretAt = (
  text: string,
  place: string,
  variables: Variables,
  faults: Array<Fault>
): Redacted.Redacted<string> => {
  const found = resolveReferences(text, variables)
  if ("value" in found) return Redacted.make(found.value)
  const rule = "missing" in found
    ? "which is not set"
    : isOwnVariable(found.refused)
    ? "which is the gateway's own"
    : "which GATEWAY_REFERENCES does not allow"
  const name = "missing" in found ? found.missing : found.refused
  if (name.startsWith(filePrefix)) {
    const why = "missing" in found
      ? "which must be a regular file with a text of at most 64 KiB"
      : "which is in no folder of GATEWAY_SECRET_DIRS"
    faults.push(fault(place, `refers to the file ${shortenName(name.slice(filePrefix.length))}, ${why}`))
    return Redacted.make("")
  }
  // A text that is no name of a variable may be a part of a secret.
  const named = variableName.test(name) ? `the environment variable ${shortenName(name)}` : "an environment variable"
  faults.push(fault(place, `refers to ${named}, ${rule}`))
  return Redacted.make("")
}

/** Stands for a secret in replies. */
export const hidden = "***"

/** True for an address with a secret as replies show it, which stands for nothing here. */
export const isShown = (text: string): boolean =>
  text === hidden || text.includes(`//${hidden}@`) || /[?&=#]\*\*\*(?:$|[&#])/.test(text)

/** The proxy at a place of the file, which is an address or `direct`; `undefined` for a blank one. */
export const proxyAt = (
  text: string | undefined,
  place: string,
  variables: Variables,
  faults: Array<Fault>
): Redacted.Redacted<string> | undefined => {
  const written = text?.trim() ?? ""
  if (written === "") return undefined
  if (isShown(written)) {
    faults.push(fault(place, "must be written with its user information"))
    return undefined
  }
  const proxy = secretAt(written, place, variables, faults)
  const address = Redacted.value(proxy)
  if (address !== "" && !isProxySetting(address)) {
    faults.push(fault(place, "must be an http, https, socks5 or socks5h address, or direct"))
  }
  return proxy
}
