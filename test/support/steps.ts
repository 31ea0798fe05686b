/** Counts the steps of code without a meter of its own: what it asks of maps, sets and lists. */

type Method = (this: unknown, ...args: ReadonlyArray<unknown>) => unknown

/** A look at one entry is a step; a walk has one for each element. */
const counted: ReadonlyArray<readonly [of: object, names: ReadonlyArray<string>]> = [
  [Map.prototype, ["get", "has", "set"]],
  [Set.prototype, ["add", "has"]],
  [
    Array.prototype,
    [
      "concat",
      "every",
      "filter",
      "find",
      "findIndex",
      "flatMap",
      "forEach",
      "includes",
      "indexOf",
      "map",
      "reduce",
      "slice",
      "some"
    ]
  ]
]

/** The number of steps that `work` takes before it returns. It is the same on every machine. */
export const countSteps = (work: () => void): number => {
  let steps = 0
  const restores: Array<() => void> = []
  for (const [of, names] of counted) {
    for (const name of names) {
      const method: Method = Reflect.get(of, name)
      restores.push(() => Object.defineProperty(of, name, { value: method }))
      const counting: Method = function(...args) {
        steps += Array.isArray(this) ? 1 + this.length : 1
        return Reflect.apply(method, this, args)
      }
      Object.defineProperty(of, name, { value: counting })
    }
  }
  try {
    work()
  } finally {
    for (const restore of restores) restore()
  }
  return steps
}
