/**
 * Modules of `src` as they are with other modules in the place of some, for tests of what is added by a line in a list.
 */
import { registerHooks } from "node:module"
import path from "node:path"
import { pathToFileURL } from "node:url"

const root = pathToFileURL(`${path.join(import.meta.dirname, "../..")}${path.sep}`).href

let graphs = 0

/**
 * Imports modules of the repository in a graph of their own, in which each module that `replacements` names is the other one. That one alone
 * imports the original. All paths begin at the folder of the repository.
 */
export const replacing = (replacements: Readonly<Record<string, string>>) => {
  const mark = `?graph=${++graphs}`
  const others = new Map(Object.entries(replacements).map(([from, to]) => [root + from, root + to]))
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context)
      const { parentURL } = context
      if (
        !(parentURL ?? "").endsWith(mark) || !resolved.url.startsWith(root) || resolved.url.includes("/node_modules/")
      ) {
        return resolved
      }
      const other = others.get(resolved.url) ?? resolved.url
      return { ...resolved, url: (parentURL === other + mark ? resolved.url : other) + mark }
    }
  })
  return {
    load: <A>(file: string): Promise<A> => import(`${root}${file}${mark}`) as Promise<A>,
    end: () => hooks.deregister()
  }
}
