/**
 * How upstreams are written. The group `upstream` of the file has no name; behind the decoder it is the entry `default` like every other
 * one. The file's places, the identifiers of accounts, the keys of the shared store and histories write it without a name, as they did before
 * there were others.
 */

/** The name of the entry that the group `upstream` describes. Only this module and the decoder of the configuration compare with it. */
export const defaultUpstream = "default"

/** Whether an upstream is written without its name. */
export const isUnnamed = (upstream: string): boolean => upstream === defaultUpstream

/** The name of an upstream that may be written without one. */
export const upstreamNamed = (written: string | null | undefined): string => {
  const name = written?.trim() ?? ""
  return name === "" ? defaultUpstream : name
}

/** The place of an upstream in the configuration. */
export const placeOfUpstream = (name: string): string => isUnnamed(name) ? "upstream" : `upstreams.${name}`

/** A form within an upstream, such as an account's identifier: `<upstream>/<form>`, or the form alone. */
export const keyWithin = (upstream: string, form: string): string =>
  isUnnamed(upstreamNamed(upstream)) ? form : `${upstream}/${form}`
