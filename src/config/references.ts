/**
 * References to variables of the environment within configured secrets: `${NAME}` is the variable's value, `$${` is `${`. The
 * configuration keeps the text as written; only its use has the value.
 */
const reference = /\$\$\{|\$\{([^}]*)\}/g

/** A text with the values of its references, or the name of a variable that is unset or malformed. */
export type Referenced = { readonly value: string } | { readonly missing: string }

/** Looks a variable up; `undefined` if it is unset. */
export type Variables = (name: string) => string | undefined

/** Replaces the references in a text. A value is inserted as it is: references within it have no meaning. */
export const resolveReferences = (text: string, variables: Variables): Referenced => {
  let missing: string | undefined
  const value = text.replace(reference, (found, name: string | undefined) => {
    if (name === undefined) return "${"
    const known = /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? variables(name) : undefined
    if (known === undefined) missing ??= name
    return known ?? found
  })
  return missing === undefined ? { value } : { missing }
}
