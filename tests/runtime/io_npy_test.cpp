// NumPy arrays: NumPy's own bytes, every type, both orders, and headers that lie.
#include "runtime/io/npy.h"

#include "tests/runtime/io_test_util.h"

namespace sluice::runtime::io {
namespace {

std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  const auto n = static_cast<uint32_t>(dict.size());
  out.append(reinterpret_cast<const char*>(&n), version == 1 ? 2 : 4);
  return out + dict + data;
}

TEST(Npy, WritesWhatNumpyWrites) {
  // numpy.save of numpy.array([[1, 2, 3]], dtype='<i2')
  const std::string bytes = npy_to_bytes(Array::from<int16_t>({1, 3}, {1, 2, 3}));
  EXPECT_EQ(bytes.size(), 128u + 6u);
  EXPECT_EQ(bytes.substr(10, 60), "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3), } ");
  EXPECT_EQ(to_hex(bytes.substr(0, 10)),
            "934e554d50590100"
            "7600");
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_NE(npy_to_bytes(Array::from<float>({2}, {1, 2})).find("'shape': (2,), }"), std::string::npos);
  EXPECT_NE(npy_to_bytes(Array::scalar(true)).find("'descr': '|b1', 'fortran_order': False, 'shape': (), }"),
            std::string::npos);
}

TEST(Npy, EveryTypeComesBack) {
  for (int number = 1; number <= 23; ++number) {
    const auto type = static_cast<DType>(number);
    const std::string name(graph::dtype_name(type));
    if (graph::dtype_size(type) == 0 || name.starts_with('q') || type == DType::kQint8 ||
        type == DType::kBfloat16)
      continue;
    for (const Dims& dims : {Dims{}, Dims{3}, Dims{2, 3}, Dims{0, 2}}) {
      Array a = Array::zeros(type, dims);
      for (size_t i = 0; i < a.bytes(); ++i)
        static_cast<char*>(a.data())[i] = type == DType::kBool ? 1 : static_cast<char>(i + 1);
      const Array b = npy_from_bytes(npy_to_bytes(a), "x");
      ASSERT_EQ(b.dtype(), type);
      ASSERT_EQ(b.dims(), dims);
      EXPECT_TRUE(a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0) << name;
    }
  }
  EXPECT_EQ(error_of([] { npy_to_bytes(Array::strings({}, {"a"})); }), Code::kInvalidArgument);
}

TEST(Npy, FortranOrderSwappedBytesAndVersion2) {
  const Array f = npy_from_bytes(
      npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", "\x01\x04\x02\x05\x03\x06"), "x");
  EXPECT_EQ(std::vector<uint8_t>(f.as<uint8_t>().begin(), f.as<uint8_t>().end()),
            (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  const Array s = npy_from_bytes(
      npy("{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }\n", std::string("\0\0\1\2", 4), 2), "x");
  EXPECT_EQ(s.item<int32_t>(), 258);
}

TEST(Npy, HeadersThatLieAreRefusedNamingTheFile) {
  const std::string four(4, '\0');
  std::string text;
  for (const std::string& bad :
       {std::string("PK"), std::string("\x93NUMPY"), npy("{'descr': '<f4'", four),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", four),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }", four),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", four),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,), }", four),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", four),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (), }", four),
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }", four),
        npy("{'fortran_order': False, 'shape': (), }", four), npy("", four)}) {
    const Code c = error_of([&] { npy_from_bytes(bad, "in.npy"); }, &text);
    EXPECT_TRUE(c == Code::kInvalidArgument || c == Code::kDataLoss) << bad;
    EXPECT_NE(text.find("in.npy"), std::string::npos) << text;
  }
  EXPECT_EQ(error_of([] { read_npy("/nowhere.npy"); }), Code::kNotFound);
}

}  // namespace
}  // namespace sluice::runtime::io
