/**
 * The history of admin changes in the SQLite file of usage: a table of its own, made with the first change.
 *
 * Changes are rare, so each access opens the file anew: one that was removed or replaced needs no attention.
 */
import * as Effect from "effect/Effect"
import { statSync } from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import { type ChangePlace, mostChanges, plainTexts } from "./changes.ts"
import { type Connect, loadConnect, UsageFileError, usageFileError } from "./openSqlite.ts"

const makeTable = "CREATE TABLE IF NOT EXISTS admin_changes (position INTEGER PRIMARY KEY, change TEXT NOT NULL) STRICT"
const findTable = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'admin_changes'"
const insert = "INSERT OR IGNORE INTO admin_changes (position, change) VALUES (?, ?)"
const removeOld = "DELETE FROM admin_changes WHERE position < ?"
const removeMost = `DELETE FROM admin_changes WHERE position <=
  (SELECT position FROM admin_changes ORDER BY position DESC LIMIT 1 OFFSET ${mostChanges})`
const select =
  "SELECT position, change FROM admin_changes WHERE position < ? AND position >= ? ORDER BY position DESC LIMIT ?"

/** Makes the place of a file. `given` makes the connections, for tests. */
export const changesInSqlite = (file: string, given: Connect | undefined): ChangePlace<UsageFileError> => {
  /** Runs `work` on the file that the usage store has made; fails while it is missing, or another process writes. */
  const access = Effect.fnUntraced(function*<A>(readOnly: boolean, work: (db: DatabaseSync) => A) {
    const connect = given ?? (yield* loadConnect)
    return yield* Effect.try({
      try: () => {
        // Opening a missing file would make it, with the permissions of any file. A pipe or a device is no place for it.
        if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) {
          throw new UsageFileError({ kind: "other", message: `${file} is missing` })
        }
        const db = connect(file, { readOnly, timeout: 0 })
        try {
          if (Number(db.prepare("PRAGMA user_version").get()?.["user_version"]) === 0) {
            throw new UsageFileError({ kind: "other", message: `${file} is empty` })
          }
          return work(db)
        } finally {
          db.close()
        }
      },
      catch: (error) => error instanceof UsageFileError ? error : usageFileError(file, error)
    })
  })

  return {
    ...plainTexts,
    write: (changes) =>
      access(false, (db) => {
        db.exec("BEGIN IMMEDIATE")
        try {
          db.exec(makeTable)
          const add = db.prepare(insert)
          for (const { position, text } of changes) add.run(position, text)
          db.prepare(removeMost).run()
          db.exec("COMMIT")
        } catch (error) {
          if (db.isTransaction) db.exec("ROLLBACK")
          throw error
        }
      }),
    removeBefore: (oldest) =>
      access(
        false,
        (db) => db.prepare(findTable).get() === undefined ? 0 : Number(db.prepare(removeOld).run(oldest).changes)
      ),
    read: (before, oldest, limit) =>
      access(true, (db) =>
        db.prepare(findTable).get() === undefined
          ? []
          : db.prepare(select).all(before, oldest, limit).map((row) => ({
            position: Number(row["position"]),
            text: String(row["change"])
          })))
  }
}
