import { Query } from "@upstash/query";
import { Redis } from "@upstash/redis";
import { assert, fresh } from "./program.mjs";

/** A collection of users with an index on two levels of their documents. */
function users({ url, token }) {
  // As the README asks: the package parses what it has stored.
  const redis = new Redis({ url, token, automaticDeserialization: false });
  const collection = new Query({ redis }).createCollection(fresh());
  const index = collection.createIndex({ name: "by_city", terms: ["organization", "address.city"] });
  return { collection, index };
}

const ann = { name: "Ann", organization: "Upstash", address: { city: "Zürich" } };
const bob = { name: "Bob", organization: "Upstash", address: { city: "Oslo" } };
const zurich = { organization: "Upstash", "address.city": "Zürich" };

export const cases = {
  async "set, get and list"(endpoint) {
    const { collection } = users(endpoint);
    await collection.set("1", ann);
    await collection.set("2", bob);
    assert.deepEqual((await collection.get("1")).data, ann);
    assert.equal(await collection.get("3"), null);
    const listed = await collection.list(["1", "2", "3"]);
    assert.deepEqual(
      listed.map(({ id }) => id),
      ["1", "2"],
    );
    await assert.rejects(collection.set("1", bob), /existed already/);
    assert.deepEqual((await collection.get("1")).data, ann);
  },

  async "list without names finds all documents"(endpoint) {
    const { collection } = users(endpoint);
    for (let id = 0; id < 25; id++) await collection.set(String(id), ann);
    assert.equal((await collection.list()).length, 25);
  },

  async "match finds by all terms of an index"(endpoint) {
    const { collection, index } = users(endpoint);
    await collection.set("1", ann);
    await collection.set("2", bob);
    await collection.set("3", { ...ann, name: "Eve" });
    const names = (await index.match(zurich)).map(({ data }) => data.name);
    assert.deepEqual(names.sort(), ["Ann", "Eve"]);
    assert.deepEqual(await index.match({ ...zurich, organization: "x" }), []);
  },

  async "update and delete change the index"(endpoint) {
    const { collection, index } = users(endpoint);
    await collection.set("1", ann);
    await collection.update("1", { ...ann, address: { city: "Oslo" } });
    assert.deepEqual(await index.match(zurich), []);
    assert.equal((await index.match({ ...zurich, "address.city": "Oslo" })).length, 1);
    await assert.rejects(collection.update("2", bob), /didn't exist/);
    await collection.delete("1");
    assert.deepEqual(await index.match({ ...zurich, "address.city": "Oslo" }), []);
  },
};
