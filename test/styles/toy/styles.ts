/** The list of styles with the small one. */
import { styles as real } from "../../../src/styles/styles.ts"
import { toy } from "./style.ts"

export const styles = [...real, toy]
