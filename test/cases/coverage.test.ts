/** Every case of the collection has a test that begins with its number; what others own is a part of it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { elsewhere } from "./elsewhere.ts";

const cases = [
  "001 002 004 005 007 008 010 011 013 014 016 017 019 020 022 023 025 026",
  "028 029 031 032 034 035 037 038 040 041 043 044",
  "046 047 049 050 052 053 055 056 058 059",
  "061 062 064 065 067 068 070 071 073 074",
  "076 077 079 080 082 083 085 086 088 089 091 092",
  "094 095 097 098 100 101 103 104 106 107 109",
  "110 112 113 115 116 118 119 121 122 124",
  "125 127 128 130 131 133 134 136 137",
  "139 140 142 143 145 146 148 149 151 152 154 155 157",
  "158 160 161 163 164 166 167",
  "169 170 172 173",
]
  .flatMap((section) => section.split(" "))
  .map((number) => `B${number}`);

test("all 116 cases have a test that names them", () => {
  const files = readdirSync(import.meta.dirname).filter((name) => /^[a-k]-.*\.test\.ts$/.test(name));
  const source = files.map((name) => readFileSync(join(import.meta.dirname, name), "utf8")).join("\n");
  const names = [...source.matchAll(/["'](?<ids>(?:B\d{3} )+)/g)].flatMap(({ groups }) =>
    groups!["ids"]!.trim().split(" "),
  );
  expect(cases).toHaveLength(116);
  expect(files).toHaveLength(11);
  expect([...new Set(names)].toSorted()).toEqual(cases.toSorted());
});

test("what others own is said of cases that there are", () => {
  expect(Object.keys(elsewhere).filter((id) => !cases.includes(id))).toEqual([]);
});
