/**
 * Which variables of the environment a reference `${NAME}` may name: those that `GATEWAY_REFERENCES` lists, by default any, and never
 * those that the gateway reads itself. A token for the admin API could else take the admin key along.
 */

/** The gateway's own variables, which may hold the credentials of its operator and of the host. Windows ignores the case of names. */
const own = /^(?:PORT|HOST|(?:GATEWAY|HOST|OTEL)_.*)$/i

/** A name, or the beginning of names before `*`. */
const pattern = /^(?:[A-Za-z_][A-Za-z0-9_]*\*?|\*)$/

/** A reference to a variable. Where none is replaced, a text with one is most likely a secret that anybody can guess. */
const reference = /\$\{(?:[A-Za-z_][A-Za-z0-9_]*|file:[^}]*)\}/

/** Whether a text refers to a variable, as `${NAME}`. */
export const namesVariable = (text: string): boolean => reference.test(text)

/** The variable that limits references. */
export const referencesVariable = "GATEWAY_REFERENCES"

/** Reads the names and beginnings of a list, which blanks or commas separate; `undefined` for any other text. */
export const parseReferenceNames = (text: string): ReadonlyArray<string> | undefined => {
  const names = text.split(/[\s,]+/).filter((name) => name !== "")
  return names.every((name) => pattern.test(name)) ? names : undefined
}

/** Whether a variable is one of the gateway's own. */
export const isOwnVariable = (name: string): boolean => own.test(name)

/** Whether a list allows a variable. A blank list allows any, and a malformed one none. */
export const allowsReference = (list: string, name: string): boolean => {
  const names = parseReferenceNames(list)
  return names !== undefined &&
    (names.length === 0 ||
      names.some((each) => each.endsWith("*") ? name.startsWith(each.slice(0, -1)) : each === name))
}
