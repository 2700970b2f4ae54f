# libsluice.so: all layers in one shared library that shows only names of namespace sluice (sluice.map), and what
# `cmake --install` puts down for find_package(Sluice).

add_library(sluice SHARED)
add_library(Sluice::sluice ALIAS sluice)
sluice_common(sluice)
# The layers' objects go in whole (an op or kernel that only a registration function mentions must not be dropped), and
# the libraries they use are linked once each.
function(sluice_absorb target)
  get_property(seen TARGET sluice PROPERTY SLUICE_ABSORBED)
  if(target IN_LIST seen)
    return()
  endif()
  set_property(TARGET sluice APPEND PROPERTY SLUICE_ABSORBED ${target})
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "STATIC_LIBRARY" OR kind STREQUAL "OBJECT_LIBRARY")
    target_sources(sluice PRIVATE $<TARGET_OBJECTS:${target}>)
    get_target_property(links ${target} LINK_LIBRARIES)
  else()
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
  endif()
  foreach(link IN LISTS links)
    if(link MATCHES "^sluice_")
      sluice_absorb(${link})
    elseif(NOT link MATCHES "NOTFOUND$" AND NOT link MATCHES "TARGET_OBJECTS")
      target_link_libraries(sluice PRIVATE ${link})
    endif()
  endforeach()
endfunction()
foreach(layer graph passes runtime kernels dsl)
  sluice_absorb(sluice_${layer})
endforeach()
target_include_directories(sluice PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                         $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
                                         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sluice>)
target_link_options(sluice PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/tools/dev/cmake/sluice.map")
set_target_properties(sluice PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                        LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tools/dev/cmake/sluice.map
                                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

install(TARGETS sluice EXPORT SluiceTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT SluiceTargets NAMESPACE Sluice:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Sluice)
include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/dev/cmake/SluiceConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/SluiceConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Sluice)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SluiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SluiceConfig.cmake ${PROJECT_BINARY_DIR}/SluiceConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Sluice)
# Headers keep their folder: #include "dsl/dsl.h" works in the tree and against an installation.
foreach(folder graph passes runtime dsl)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sluice
          FILES_MATCHING PATTERN "*.h" PATTERN "proto" EXCLUDE)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/graph/support/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sluice/graph/support)
